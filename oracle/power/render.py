"""A score as text, Markdown and a section of HTML, from the plain data of :mod:`.summary`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..reporting.summary import aligned, code, escape as plain, table
from .own_kernels import Finding, Result
from .summary import Noticed, OfClass, Summary

Table = tuple[list[str], list[list[str]]]  # head and rows
SHOWN = 40  # survivors and alarms shown; the JSON contains all


def percent(share: Noticed | OfClass) -> str:
    """Return a share as ``12 / 13 (92.3 %)``."""
    if not share["all"]:
        return "-"
    return f"{share['noticed']} / {share['all']} ({_percent(share['noticed'], share['all'])})"


def _percent(part: int, whole: int) -> str:
    """Return a percentage; it is 100 % only if the part is the whole."""
    value = 100 * part / whole
    return f"{value:.0f} %" if part in (0, whole) else f"{min(max(value, 0.1), 99.9):.1f} %"


def sentence(data: Summary) -> str:
    """Return the score in one sentence."""
    total, published = data["total"], data["published"]
    state = "" if data["complete"] else f" Interrupted: {data['unfinished']} parts were not finished."
    rows = f", {published['noticed']} of the {published['all']} published defects" if published["all"] else ""
    alarms = len(data["false_alarms"])
    verdicts = data["right_kernels"]["verdicts"]
    seeds = f"{data['seeds']} seed{'s' * (data['seeds'] != 1)}"
    right = f" {alarms} false alarms in {verdicts} verdicts on right kernels ({seeds})."
    if not total["all"]:
        return f"{data['cases']} cases:{right}{state}"
    drawn = data["sample"] is not None
    what = f"wrong kernels drawn by the seed {data['sample']}" if drawn else "wrong kernels"
    low, high = data["interval"]
    share = _percent(total["noticed"], total["all"]) + (f", of all such kernels {low} to {high} %" if drawn else "")
    return (
        f"{data['cases']} cases notice {total['noticed']} of {total['all']} {what} ({share}){rows}."
        f"{right if data['seeds'] else ''}{state}"
    )


def _operators(data: Summary) -> Table:
    head = ["operator", "cases", "kernels of published defects", "generated mutants", "equivalent", "false alarms"]
    return head, [
        [o["op"], str(o["cases"]), percent(o["published"]), percent(o["generated"]), str(o["equivalent"]),
         str(o["false_alarms"]) if data["seeds"] else "-"]
        for o in data["operators"]
    ]  # fmt: skip


def _classes(data: Summary) -> Table:
    return ["class", "what", "noticed"], [[c["class"], c["what"], percent(c)] for c in data["classes"]]


def _layers(data: Summary) -> Table:
    at = "by any case" if data["full_matrix"] else "by the first case that notices"
    head = ["layer", f"notices, {at}", "alone"]
    return head, [[x["layer"], str(x["noticed"]), str(x["alone"])] for x in data["layer_detections"]]


def _families(data: Summary) -> Table:
    earned = data["earned"]
    what = "notices" if earned["complete"] else "first to notice"
    rows = [
        [f["family"], str(f["cases"]), str(f["notices"]), str(f["essential"]),
         str(f["unique"]) if earned["complete"] else "-"]
        for f in earned["families"] if data["total"]["all"]
    ]  # fmt: skip
    return ["family", "cases", what, "in a smallest set", "only here"], rows


def _survivors(data: Summary) -> list[str]:
    return [
        f"{s['id']}: {s['what']}; needs {s['needs']}"
        + (f"; {s['would_notice']} notices" if "would_notice" in s else "")
        for s in data["survivors"]
    ]


def _alarms(data: Summary) -> list[str]:
    flagged = [
        f"{f['id']} is equivalent ({f['equivalent']}) and was flagged by {f['case']}: {f['reason']}"
        for f in data["flagged_equivalents"]
    ]
    return flagged + [
        f"{a['op']} {a['kernel']} on {a['soc']}, seed {a['seed']}: {a['case']}: {a['reason']}"
        for a in data["false_alarms"]
    ]


def _sections(data: Summary) -> list[tuple[str, list[str]]]:
    """Return the lists with content, each with its title."""
    missing = [f"{m['family']} ({m['notices']})" for m in data["missing_families"]]
    result = [
        ("Missing: families of the built-in catalogue that notice survivors", missing),
        ("Survivors", _survivors(data)),
        ("False alarms", _alarms(data)),
        ("Cases that cannot be scored", [f"{case}: {why}" for case, why in data["unusable"].items()]),
    ]
    return [(title, lines) for title, lines in result if lines]


def _tables(data: Summary) -> list[Table]:
    """Return the tables with content: without wrong kernels only the operators' table."""
    return [_operators(data), *([_classes(data), _layers(data)] if data["total"]["all"] else [])]


def text(data: Summary) -> str:
    """Return the score for a terminal."""
    parts = [
        f"{', '.join(data['catalogue'])}, tier {data['tier']}: {sentence(data)}",
        *(aligned(head, rows) for head, rows in _tables(data)),
        *("\n".join([f"{title}:", *(f"  {line}" for line in _few(lines))]) for title, lines in _sections(data)),
        _time(data),
    ]
    return "\n\n".join(parts)


def _time(data: Summary) -> str:
    return f"{data['duration_s']:.0f} s, {data['cpu_s']:.0f} s of CPU"


def _few(lines: Sequence[str]) -> list[str]:
    left = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"... and {left} more"] if left > 0 else [])]


def markdown(data: Summary) -> str:
    """Return the score for a pull request."""
    names = ", ".join(data["catalogue"])
    parts = [
        f"## Detection score: {plain(names)}, tier {data['tier']}",
        plain(sentence(data)),
        f"{code(data['command'])}; standard {data['standard']}, layers {', '.join(data['layers'])}, "
        f"SoC: {data['soc']}; {_time(data)}",
    ]
    parts += map(_pipes, _tables(data))
    for title, lines in _sections(data):
        parts.append("\n".join([f"### {title}", "", *(f"- {plain(line)}" for line in _few(lines))]))
    families = _families(data)
    if families[1]:
        parts += ["### Which families earn their place", _pipes(families)]
    return "\n\n".join(parts) + "\n"


def _pipes(given: Table) -> str:
    head, rows = given
    return table(head, [[plain(cell) for cell in row] for row in rows])


def text_of_kernels(result: Result, cases: int) -> str:
    """Return the score of a user's kernels for a terminal: noticed kernels with their case, survivors, flagged ones."""
    wrong, right = result.wrong, result.right
    counts = [f"{cases} cases notice {len(result.noticed)} of {len(wrong)} wrong kernels"] if wrong else []
    counts += [f"{len(result.flagged)} of {len(right)} right kernels are flagged"] if right else []
    parts = ["; ".join(counts) + "."]
    if result.noticed:
        rows = [[f.kernel.name, f.kernel.op, f.kernel.soc, f.case] for f in result.noticed]
        parts.append(aligned(["wrong kernel", "operator", "SoC", "first noticed by"], rows))
    survivors = [f"{f.kernel.name} ({f.kernel.op}, {f.kernel.soc}): {_unnoticed(f)}" for f in result.survivors]
    flagged = [f"{f.kernel.name} ({f.kernel.op}, {f.kernel.soc}): {f.case}: {f.reason}" for f in result.flagged]
    flagged += [
        f"{f.kernel.name} is not flagged, and not tested: {_unnoticed(f)}" for f in right if not f.judged and not f.case
    ]
    unusable = [f"{case}: {why}" for case, why in result.unusable.items()]
    sections = {"Survivors": survivors, "Right kernels": flagged, "Cases that cannot be scored": unusable}
    parts += ["\n".join([f"{title}:", *(f"  {line}" for line in lines)]) for title, lines in sections.items() if lines]
    return "\n\n".join(parts)


def _unnoticed(finding: Finding) -> str:
    if finding.judged:
        return f"passes all {finding.judged} cases{' that it took' if finding.refused else ''}"
    return f"takes no case: {finding.refused}" if finding.refused else "there is no case of its operator on its SoC"


STYLE = (
    ".power table{border-collapse:collapse;margin:.6em 0}.power td,.power th{border:1px solid #8886;padding:.2em .6em;"
    "text-align:left}.power .good{color:#176f2c}.power .bad{color:#b3261e}.power li{overflow-wrap:anywhere}"
)


def html(data: Summary) -> str:
    """Return the score as one section of HTML, for a page or alone."""
    good = not data["survivors"] and not data["false_alarms"] and not data["flagged_equivalents"] and data["complete"]
    parts = [
        f"<style>{STYLE}</style>",
        f"<h2>Detection score: {escape(', '.join(data['catalogue']))}, tier {escape(data['tier'])}</h2>",
        f'<p class="{"good" if good else "bad"}">{escape(sentence(data))}</p>',
        f"<p><code>{escape(data['command'])}</code>; standard {escape(data['standard'])}, layers "
        f"{escape(', '.join(data['layers']))}, SoC: {escape(data['soc'])}; {_time(data)}</p>",
    ]
    parts += map(_html_table, _tables(data))
    for title, lines in _sections(data):
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        parts.append(f"<details><summary>{escape(title)}: {len(lines)}</summary><ul>{items}</ul></details>")
    families = _families(data)
    if families[1]:
        result = _html_table(families)
        parts.append(f"<details><summary>Which families earn their place</summary>{result}</details>")
    return f'<section class="power" id="power">{"".join(parts)}</section>\n'


def _html_table(given: Table) -> str:
    head, rows = given
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
