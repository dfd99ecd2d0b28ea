"""What the site takes from the repository: the navigation, and links that lead out of docs/."""

import os
import re

# A list right after a paragraph, which MkDocs would take for a part of it.
LIST = re.compile(r"^([^\s\-|#].*)\n((?:-|1\.) )", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^()\s#]+\.md)\)")


def on_config(config):
    """The navigation is the index: its sections with the pages of their tables."""
    nav = [{"Overview": "README.md"}]
    with open(os.path.join(config["docs_dir"], "README.md"), encoding="utf-8") as index:
        for line in index:
            if line.startswith("## "):
                nav.append({line[3:].split(":")[0].strip(): []})
            elif line.startswith("| ["):
                pages = next(iter(nav[-1].values()))
                cell = line.split("|")[1]
                pages.extend({title: path} for title, path in LINK.findall(cell))
    config["nav"] = nav
    return config


def on_page_markdown(markdown, page, config, files):
    """Links to files of the repository that are not part of the site lead to where it is hosted."""
    hosted = config["repo_url"].rstrip("/") + "/blob/main/"
    out = re.compile(r"\]\(" + r"\.\./" * (page.file.src_uri.count("/") + 1) + r"([^()\s]+)\)")
    markdown = out.sub(lambda m: "](%s%s)" % (hosted, m.group(1)), markdown)
    markdown = LIST.sub(r"\1\n\n\2", markdown)
    # MkDocs leaves directories of this name out.
    return re.sub(r"\]\((templates/[^()\s]+)\)", lambda m: "](%sdocs/%s)" % (hosted, m.group(1)), markdown)
