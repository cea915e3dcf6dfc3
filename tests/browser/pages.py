"""Opens the pages that the program writes, and the guide, in a real browser, at the width of a phone and of a desk.

Clicks, sorts, hovers, types, and reads values back.

    python tests/browser/pages.py PROGRAM SITE [PICTURES]

SITE is the folder of the guide, or `-` to leave it out; with PICTURES, a folder, pages are also kept as PNG.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

HERE = Path(__file__).parent
PHONE, DESK = (390, 844), (1280, 900)
LARGEST = 2_000_000
counts = {"passed": 0, "failed": 0}


def check(what: str, holds: object) -> None:
    """Counts one check, and says which failed."""
    counts["passed" if holds else "failed"] += 1
    if not holds:
        print(f"FAILED {what}")


def browser(folder: str) -> webdriver.Chrome:
    """Debian's Chromium without a window and without connections of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])))
    words = "headless no-sandbox disable-gpu disable-quic no-first-run disable-sync disable-component-update"
    words += " disable-background-networking"
    for word in words.split():
        options.add_argument(f"--{word}")
    options.add_argument(f"--user-data-dir={folder}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


class Pages:
    """A browser, and where its pictures go."""

    def __init__(self, driver: webdriver.Chrome, pictures: Path | None) -> None:
        self.driver = driver
        self.pictures = pictures

    def open(self, page: Path, size: tuple[int, int]) -> None:
        """Opens a page of a file at this size; its width fits, nothing is fetched, nothing goes wrong."""
        driver = self.driver
        for kind in ("browser", "performance"):
            driver.get_log(kind)
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )
        driver.get(page.as_uri())
        name = f"{page.name} at {size[0]}"
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        check(f"{name}: the page is as wide as the window ({wide})", wide <= size[0])
        requests = [json.loads(e["message"])["message"] for e in driver.get_log("performance")]
        urls = [m["params"]["request"]["url"] for m in requests if m["method"] == "Network.requestWillBeSent"]
        fetched = [url for url in urls if url.startswith(("http", "ws"))]
        check(f"{name}: nothing is fetched ({fetched})", not fetched)
        errors = [e["message"] for e in driver.get_log("browser") if e["level"] == "SEVERE"]
        check(f"{name}: no errors ({errors})", not errors)

    def picture(self, name: str, size: tuple[int, int], scheme: str = "light") -> None:
        """Keeps the whole page as PNG."""
        if self.pictures is None:
            return
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        high = self.driver.execute_script("return document.documentElement.scrollHeight")
        metrics = {"width": size[0], "height": min(high, 6000), "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.save_screenshot(str(self.pictures / f"{name}-{size[0]}-{scheme}.png"))
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def all(self, what: str, within: WebElement | None = None) -> list[WebElement]:
        """Elements by CSS."""
        return (within or self.driver).find_elements(By.CSS_SELECTOR, what)

    def shown(self, what: str) -> list[WebElement]:
        """Those of them that can be seen."""
        return [element for element in self.all(what) if element.is_displayed()]

    def over(self, element: WebElement, x: int = 0, y: int = 0) -> None:
        """Moves the pointer there, from the middle of the element."""
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.driver).move_to_element_with_offset(element, x, y).perform()

    def said(self, plot: WebElement) -> str:
        """What is told under a picture."""
        return self.all("output", plot.find_element(By.XPATH, "./ancestor::figure"))[0].text

    def column(self, table: WebElement, number: int) -> list[str]:
        """The cells of a column."""
        script = "return [...arguments[0].tBodies[0].rows].map(row => row.cells[arguments[1]].textContent)"
        return self.driver.execute_script(script, table, number)


def numbers(pages: Pages, table: WebElement) -> list[int]:
    """Columns of a table that hold numbers alone, not all the same."""
    cells = [pages.column(table, k) for k in range(len(pages.all("th", table)))]
    return [k for k, c in enumerate(cells) if all(re.match(r"-?[\d.]", text) for text in c) and len(set(c)) > 1]


def sorting(pages: Pages, name: str) -> None:
    """A click on a head sorts a column, another one the other way; totals stay."""
    tables = [(table, column) for table in pages.shown("table") for column in numbers(pages, table)]
    check(f"{name}: a table has numbers", tables)
    table, place = max(tables, key=lambda found: len(pages.all("tbody tr", found[0])))
    foot = [row.text for row in pages.all("tfoot tr", table)]
    buttons = pages.all("th button", table)
    key = lambda text: float(re.match(r"-?[\d.]+(?:e-?\d+)?", text).group())  # noqa: E731
    for direction in ("ascending", "descending"):
        buttons[place].click()
        found = [key(cell) for cell in pages.column(table, place)]
        check(f"{name}: {direction} {found}", found == sorted(found, reverse=direction == "descending"))
        state = pages.all("th", table)[place].get_attribute("aria-sort")
        check(f"{name}: the head says {direction} ({state})", state == direction)
    check(f"{name}: totals stay last", [row.text for row in pages.all("tfoot tr", table)] == foot)


def reading(pages: Pages, name: str) -> None:
    """The pointer and the arrow keys read values off every picture that is shown."""
    for plot in pages.shown(".plot"):
        svg = pages.all("svg", plot)[0]
        title = svg.get_attribute("aria-label")
        if svg.get_attribute("data-plot"):
            pages.over(svg, 40, 20)
            first = pages.said(plot)
            check(f"{name}: hovering over “{title}” tells values ({first!r})", re.search(r"\d", first) and ":" in first)
            pages.over(svg, -60, 20)
            check(f"{name}: elsewhere “{title}” tells others", pages.said(plot) != first)
        else:
            marks = pages.all("[data-tip]", plot)
            pages.over(pages.all("rect, path", marks[0])[0])
            told = pages.said(plot).split("; ")
            check(f"{name}: hovering over a mark of “{title}” ({told})", marks[0].get_attribute("data-tip") in told)
            known = {mark.get_attribute("data-tip") for mark in marks}
            check(f"{name}: what “{title}” tells is what its marks say ({told})", known.issuperset(told))
        before = pages.said(plot)
        plot.send_keys(Keys.ARROW_RIGHT)
        plot.send_keys(Keys.ARROW_RIGHT)
        if len(pages.all("[data-tip]", plot)) != 1:
            check(f"{name}: arrow keys move on in “{title}” ({before!r})", pages.said(plot) not in ("", before))


def overlaps(pages: Pages, name: str) -> None:
    """No word of a picture stands on another, and none leaves the picture."""
    found = pages.driver.execute_script((HERE / "overlaps.js").read_text())
    check(f"{name}: words do not overlap ({found[:5]})", not found)


def report(pages: Pages, page: Path) -> None:
    """What every report promises."""
    name = page.stem
    check(f"{name}: {page.stat().st_size} bytes", page.stat().st_size < LARGEST)
    for size in (PHONE, DESK):
        pages.open(page, size)
        where = f"{name} at {size[0]}"
        first = pages.all("main > section")[0]
        check(f"{where}: the conclusion is first", first.get_attribute("id") == "conclusion" and len(first.text) > 40)
        check(f"{where}: one heading", len(pages.all("h1")) == 1)
        facts = pages.all("dl")[-1].text
        check(f"{where}: how to repeat it", all(word in facts for word in ("widemargin", "Seed", "UTC", "Command")))
        check(f"{where}: pictures have names", all(s.get_attribute("aria-label") for s in pages.all("svg")))
        sorting(pages, where)
        reading(pages, where)
        overlaps(pages, where)
        pages.picture(name, size)
    pages.picture(name, DESK, "dark")


def choices(pages: Pages, page: Path) -> None:
    """Which picture and which machines are shown is the reader's choice."""
    pages.open(page, DESK)
    name = page.stem
    if pages.all("select"):
        select = Select(pages.all("select")[0])
        figures = lambda: [f.is_displayed() for f in pages.all("[data-of=choice1]")]  # noqa: E731
        check(f"{name}: one of the pictures is shown", figures().count(True) == 1 and figures()[0])
        select.select_by_index(1)
        check(f"{name}: another one is shown", figures().count(True) == 1 and figures()[1])
    box = pages.all("input[type=checkbox]")[0]
    curves = lambda: sum(c.is_displayed() for c in pages.all("[data-series='0']"))  # noqa: E731
    before = curves()
    box.click()
    check(f"{name}: a box hides a series", before > 0 and curves() == 0)
    box.send_keys(Keys.SPACE)
    check(f"{name}: the keyboard shows it again", curves() == before)
    pages.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    check(f"{name}: all pictures are printed", all(f.is_displayed() for f in pages.all("figure")))
    pages.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def contrast(pages: Pages, page: Path) -> None:
    """Text stands out from its ground by at least 4.5 to 1, in light and in dark."""
    script = (HERE / "contrast.js").read_text()
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        pages.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        pages.driver.get(page.as_uri())
        found = pages.driver.execute_script(script)
        check(f"{page.stem}, {scheme}: everything can be told from its ground ({found[:5]})", not found)
    pages.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def guide(pages: Pages, site: Path) -> None:
    """The guide opens from disk at both widths, and finds words."""
    for page in [
        "index.html",
        "tutorial.html",
        "guide/margins.html",
        "guide/which-machine.html",
        "commands.html",
        "python.html",
        "machines.html",
    ]:
        for size in (PHONE, DESK):
            pages.open(site / page, size)
            check(f"{page} has a heading", pages.all("h1")[0].text)
            broken = pages.driver.execute_script(
                "return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
            )
            check(f"{page}: pictures load ({broken})", not broken)
            pages.picture("guide-" + page.replace("/", "-").removesuffix(".html"), size)
    pages.open(site / "index.html", DESK)
    field = pages.all("input.md-search__input")[0]
    field.click()
    field.send_keys("landmark rows")
    pages.driver.implicitly_wait(10)
    found = pages.all(".md-search-result__item a")
    check("the guide's search finds landmark rows", found)
    pages.driver.implicitly_wait(0)


def write(program: str, folder: Path) -> list[Path]:
    """One report of each kind, of small data."""
    run = lambda words: subprocess.run([program, *words.split()], cwd=folder, check=True, capture_output=True)  # noqa: E731
    run("compare wdbc sonar --machines odm,ldm,svm --repeats 3 --budget 3 --report compare.html")
    run("sweep sonar wdbc --machines svm --over c=2^-4:2^4:*4 --repeats 3 --fixed --report sweep.html")
    run("tune sonar --machine svm --kernel rbf --scale minmax --grid c=1;4;16,gamma=0.1;0.4 --report tune.html")
    run("train sonar odm.model --scale minmax --probability")
    run("train sonar svm.model --machine svm --scale minmax")
    run("margins sonar odm.model svm.model --report margins.html")
    run("audit sonar --report audit.html")
    return [folder / f"{name}.html" for name in ("compare", "sweep", "tune", "margins", "audit")]


def main() -> None:
    """Checks everything and counts."""
    program, site = str(Path(sys.argv[1]).resolve()), sys.argv[2]
    pictures = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as profile:
        reports = write(program, Path(place))
        driver = browser(profile)
        try:
            pages = Pages(driver, pictures)
            for page in reports:
                report(pages, page)
                contrast(pages, page)
            choices(pages, reports[0])
            if site != "-":
                guide(pages, Path(site).resolve())
        finally:
            driver.quit()
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    sys.exit(counts["failed"] > 0)


if __name__ == "__main__":
    main()
