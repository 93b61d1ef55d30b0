"""What the site has that docs/ has not: two pages of the directory above, and links out of docs/."""

import os
import re

from mkdocs.structure.files import File

ABOVE = ("CHANGELOG.md", "SECURITY.md")
ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", ".."))
ASSETS = os.path.join(os.path.dirname(__file__), "assets")
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
NAMED = re.compile(r"\[([\w-]+\.md)\](?=\(\1[)#])")


def on_files(files, config):
    for name in ABOVE:
        files.append(File.generated(config, name, abs_src_path=os.path.join(ROOT, name)))
    for name in sorted(os.listdir(ASSETS)):
        files.append(File.generated(config, "assets/" + name, abs_src_path=os.path.join(ASSETS, name)))
    return files


def on_page_markdown(markdown, page, config, files):
    above = page.file.src_uri in ABOVE

    def leads(match):
        to = os.path.normpath(os.path.join("" if above else "docs", match[2]))
        if to.startswith("docs" + os.sep):
            return match[1] + to[len("docs/") :] + match[3]
        if to in ABOVE:
            return match[1] + to + match[3]
        if not os.path.exists(os.path.join(ROOT, to)):
            raise SystemExit(f"{page.file.src_uri}: {match[2]} leads nowhere")
        at = os.environ.get("ANTEROOM_DOCS_COMMIT", "main")
        return f"{match[1]}{config.extra['repository']}/blob/{at}/{to}{match[3]}"

    return LINK.sub(leads, NAMED.sub(lambda m: f"[{titles(config.nav)[m[1]]}]", markdown))


def titles(nav):
    """What pages are called in the navigation: a file's name says nothing to who reads a site."""
    all = {}
    for item in nav:
        for title, to in item.items():
            all.update({to: title} if isinstance(to, str) else titles(to))
    return all


def on_page_content(html, page, config, files):
    if page.ancestors:
        return f'<p class="kind">{page.ancestors[-1].title}</p>\n{html}'
    return html
