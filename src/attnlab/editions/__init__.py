"""The course handed out: the learner's copy, its updates, hand-outs for a class.

    notebooks      one source, several editions
    merge          an update of the course and a learner's work become one notebook
    copies         the folder in which a learner works
    command        attnlab copy, attnlab lab, attnlab handout

The standard library only, so that a copy that is up to date costs no time and an editor other than
JupyterLab needs nothing else.
"""
