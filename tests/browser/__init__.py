"""The course in a real JupyterLab and a real browser."""
