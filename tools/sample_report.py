"""The small sample in ``reports/``, in both languages, and the README's pictures of it.

    python tools/sample_report.py              render reports/sample.* again from reports/sample.jsonl
    python tools/sample_report.py --run        run the sample first: a kernel that computes in 16 bits
    python tools/sample_report.py --check      exit status 1 if a rendered file differs from the record
    python tools/sample_report.py --pictures   also take docs/images/report-*.png

--pictures needs Chromium and Playwright.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from oracle.record.reader import read  # noqa: E402
from oracle.reporting import summary  # noqa: E402
from oracle.reporting.html import page as html  # noqa: E402
from oracle.reporting.language.translate import CHINESE, ENGLISH  # noqa: E402

REPORTS, IMAGES = ROOT / "reports", ROOT / "docs" / "images"
RECORD = REPORTS / "sample.jsonl"
OPERATORS = (
    "BinaryCrossEntropyBackward",
    "LogSigmoidBackward",
    "NLLLossBackward",
    "SigmoidBackward",
    "SoftmaxBackward",
)
RUN = ["run", *(word for name in OPERATORS for word in ("--op", f"aclnn{name}")), "--tier", "smoke",
       "-k", "first_look or rows or special_spots or public_example", "-q",
       "--backend-option", "numerics=native"]  # fmt: skip


def rendered() -> dict[Path, str]:
    """Return every file of the sample with its text."""
    records = [read(RECORD)]
    return {
        REPORTS / "sample.html": html.render(records),
        REPORTS / "sample.md": summary.render(records, ENGLISH),
        REPORTS / "sample.zh.md": summary.render(records, CHINESE),
    }


def run() -> None:
    """Make the record anew. The run fails, as intended; only its record is kept."""
    RECORD.unlink(missing_ok=True)
    command = [sys.executable, "-m", "oracle.cli", *RUN]
    done = subprocess.run([*command, "--record", "reports/sample.jsonl", "--report", "reports/sample.html"], cwd=ROOT)
    if done.returncode != 1:
        sys.exit(f"the sample run ended with {done.returncode}; it must end with 1: a kernel in 16 bits fails")


def pictures() -> None:
    """Take pictures of the report's head and first failure, light and dark."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1180, "height": 1180}, color_scheme=scheme, locale="en-US")
            page = context.new_page()
            page.goto((REPORTS / "sample.html").as_uri())
            page.screenshot(path=IMAGES / f"report-{scheme}.png")
        browser.close()


def main() -> int:
    wanted = set(sys.argv[1:])
    if unknown := wanted - {"--run", "--check", "--pictures"}:
        sys.exit(f"unknown: {' '.join(unknown)}\n{__doc__}")
    if "--check" in wanted:
        stale = [path for path, text in rendered().items() if path.read_text(encoding="utf-8") != text]
        for path in stale:
            print(f"{path}: not what the record gives; run python tools/sample_report.py")
        return bool(stale)
    if "--run" in wanted:
        run()
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8", newline="")
        print(f"{path}: {len(text.encode()):,} bytes")
    if "--pictures" in wanted:
        pictures()
    return 0


if __name__ == "__main__":
    sys.exit(main())
