def write(site, url): pass
