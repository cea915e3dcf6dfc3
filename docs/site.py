"""What the guide is made of besides docs/: documents of the repository's root, and the help of every command."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
# Documents that live at the root, and their pages.
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "BENCHMARKS.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELIABILITY.md": "reliability.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=from_root((ROOT / name).read_text())))
    files.append(File.generated(config, "commands.md", content=commands(os.environ["WIDEMARGIN"])))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links to documents at the root lead to their pages."""
    for name, page in PAGES.items():
        markdown = re.sub(rf"\]\((\.\./)+{re.escape(name)}", f"]({page}", markdown)
    return markdown


def on_post_page(output: str, page: Page, **_: object) -> str:
    """The theme fetches what lets a page on disk search; ours is beside the pages."""
    up = "../" * page.url.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}worker.js")


def from_root(text: str) -> str:
    """A document of the root with its links as they are from docs/."""
    text = text.replace("](docs/", "](")
    for name, page in PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    # What is no page stays a name.
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)#]*\.(?:toml|csv|json)\)", r"`\1`", text)


def commands(program: str) -> str:
    """The help of every command, as the program prints it."""

    def help_of(*words: str) -> str:
        told = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
        return told.stdout

    summary = help_of()
    listed = summary.split("Commands:")[1].split("\n\n")[0]
    names = re.findall(r"^  ([a-z-]+) ", listed, re.M)
    parts = ["# Every command's options", "", "As `widemargin COMMAND --help` prints them.", ""]
    for name in (name for name in names if name != "help"):
        parts += [f"## `{name}`", "", "```text", help_of(name).strip(), "```", ""]
    return "\n".join(parts)
