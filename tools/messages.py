"""Keep the message catalogues of the reports in step with the sources.

    python tools/messages.py            gather the texts of reports and runs, merge them into the .po files, compile
    python tools/messages.py --check    exit status 1 if a text is missing, untranslated or not compiled

Babel does the work (extra ``dev``). At run time the standard library's gettext reads the compiled .mo files.
"""

from __future__ import annotations

import gettext
import io
import sys
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from oracle.reporting.language.translate import PHRASES, SENTENCES

PACKAGE = Path(__file__).parents[1] / "oracle"
LOCALE = PACKAGE / "reporting" / "locale"
DOMAIN = "aclnn-oracle"
LANGUAGES = ("zh",)
METHODS = [("reporting/**.py", "python"), ("reporting/templates/**.j2", "jinja2.ext.babel_extract"),
           ("run/**.py", "python")]  # fmt: skip
EPOCH = datetime(2026, 1, 1, tzinfo=timezone.utc)
KEYWORDS = {"_": None, "_n": (1, 2), "t": None, "tn": (1, 2), "ta": (2,)}


def gathered() -> Catalog:
    """Return every text of the sources, without its file: a text that moves must not change the catalogues."""
    catalogue = Catalog(project=DOMAIN, charset="utf-8")
    for _file, _line, message, _comments, context in extract_from_dir(PACKAGE, METHODS, keywords=KEYWORDS):
        if message:
            catalogue.add(message, context=context)
    for text in (*PHRASES, *SENTENCES):
        catalogue.add(text)
    return catalogue


def paths(code: str) -> tuple[Path, Path]:
    folder = LOCALE / code / "LC_MESSAGES"
    return folder / f"{DOMAIN}.po", folder / f"{DOMAIN}.mo"


def merged(code: str) -> Catalog:
    """Return the catalogue of a language with the sources' texts; texts that the sources no longer have are dropped."""
    po, _mo = paths(code)
    with po.open("rb") if po.exists() else io.BytesIO() as file:
        catalogue = read_po(file, locale=code)
    catalogue.update(gathered(), no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    catalogue.header_comment, catalogue.fuzzy = f"# {DOMAIN} reports in {catalogue.locale.english_name}.", False
    catalogue.project, catalogue.version, catalogue.msgid_bugs_address = DOMAIN, "", ""
    catalogue.last_translator = catalogue.language_team = ""
    catalogue.creation_date = catalogue.revision_date = EPOCH  # the date alone must not change a file
    return catalogue


def compiled(catalogue: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def messages(mo: bytes) -> dict[object, str]:
    """Return the texts of a compiled catalogue, without its header, which names the version of Babel."""
    result = gettext.GNUTranslations(io.BytesIO(mo))._catalog  # type: ignore[attr-defined]
    return {text: said for text, said in result.items() if text}


def untranslated(catalogue: Catalog) -> list[str]:
    """Return the texts without a translation, in full."""
    result = []
    for message in catalogue:
        strings = message.string if isinstance(message.string, (list, tuple)) else [message.string]
        if message.id and not all(strings):
            result.append(message.id if isinstance(message.id, str) else message.id[0])
    return result


def problems() -> list[str]:
    """Return the reasons why a catalogue is not in step, in sentences."""
    result = []
    for code in LANGUAGES:
        po, mo = paths(code)
        catalogue = merged(code)
        with po.open("rb") as file:
            known = {message.id for message in read_po(file, locale=code)}
        here = {message.id for message in catalogue}
        result += [f"{po}: not in the catalogue: {text!r}" for text in sorted(map(str, here - known))]
        result += [f"{po}: no source says: {text!r}" for text in sorted(map(str, known - here))]
        result += [f"{po}: not translated: {text!r}" for text in untranslated(catalogue)]
        if not mo.exists() or messages(mo.read_bytes()) != messages(compiled(catalogue)):
            result.append(f"{mo}: not what {po.name} says; run python tools/messages.py")
    return result


def update() -> None:
    for code in LANGUAGES:
        po, mo = paths(code)
        catalogue = merged(code)
        po.parent.mkdir(parents=True, exist_ok=True)
        with po.open("wb") as file:
            write_po(file, catalogue, width=120, omit_header=False, sort_output=True, no_location=True)
        mo.write_bytes(compiled(catalogue))
        print(f"{po}: {len(catalogue)} texts, {len(untranslated(catalogue))} not translated")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        lines = problems()
        print("\n".join(lines) or "all in step")
        sys.exit(bool(lines))
    update()
