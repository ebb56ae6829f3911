"""Both languages say the same: catalogues match the sources, placeholders are kept, phrases of a run are found."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic
from ordinary import in_full_alone

from oracle.catalogue import load_all, select
from oracle.explain import findings
from oracle.power.failures import chosen, failures
from oracle.record.reader import read
from oracle.reporting import summary
from oracle.reporting.html.page import Bilingual
from oracle.reporting.language.translate import CHINESE, ENGLISH, FIGURE, PHRASES, SENTENCES, Phrase, Text, _, _n, shape
from oracle.reporting.language.words import verdict
from oracle.settings.settings import Settings

TOOL = Path(__file__).parents[2] / "tools" / "messages.py"
CHARACTER = re.compile("[\u4e00-\u9fff]")
ENGLISH_WORDS = re.compile("[a-z]+ [a-z]{2,}")


@pytest.fixture(scope="module")
def messages() -> SimpleNamespace:
    pytest.importorskip("babel")
    return SimpleNamespace(**runpy.run_path(str(TOOL)))


def test_every_text_of_the_sources_is_translated_and_compiled(messages: SimpleNamespace) -> None:
    assert messages.problems() == []


def test_no_text_hides_in_an_f_string_where_babel_does_not_look() -> None:
    sources = (TOOL.parents[1] / "oracle" / "reporting").rglob("*.py")
    hidden = [line for path in sources for line in path.read_text(encoding="utf-8").splitlines()
              if re.search(r"""f["'].*\{[^}]*\b(_|_n)\(["']""", line)]  # fmt: skip
    assert hidden == []


def test_a_translation_keeps_every_place(messages: SimpleNamespace) -> None:
    places = re.compile(r"\{(\w+)\}")
    for message in messages.merged("zh"):
        if not message.id:
            continue
        forms = [message.id] if isinstance(message.id, str) else list(message.id)
        said = message.string if isinstance(message.string, str) else message.string[0]
        wanted = {place for form in forms for place in places.findall(form)} - {"n"}
        assert wanted <= set(places.findall(said)) | {"n"}, message.id
        if "#" in forms[0]:
            assert {int(p) for p in places.findall(said)} <= set(range(shape(forms[0]).count("#"))), message.id


def test_a_sentence_puts_its_parts_into_the_same_language() -> None:
    text = _("{some} of {cases} {did}.", some=1284, cases=_n("{n} case", "{n} cases", 7468), did=_("failed"))
    assert str(text) == "1,284 of 7,468 cases failed."
    assert CHINESE.say(text) == "7,468 个用例中有 1,284 个失败。"
    assert CHINESE.say(_n("{n} case", "{n} cases", 1)) == "1 个用例"
    assert CHINESE.say("as it is") == "as it is"


@pytest.mark.parametrize(
    ("said", "chinese"),
    [
        ("tail of every row from 16384 of 20000 along axis 1", "每行的尾块：沿轴 1 从 16384 起，轴长 20000"),
        ("scattered: 3 of 7", "零散分布：7 个中的 3 个"),
        ("scattered: N of N", "零散分布：N 个中的 N 个"),
        ("every 2nd row from 0", "从第 0 行起，每隔固定行数（2nd）"),
        ("one element, [3, 4]", "单个元素 [3, 4]"),
        ("the device's process ended: signal 11 (SIGSEGV); its last words: Segmentation fault",
         "设备进程已结束：信号 11（SIGSEGV）；最后的输出：Segmentation fault"),
        ("source (loss/kl_div/op_api/aclnn_kl_div.cpp)", "源码（loss/kl_div/op_api/aclnn_kl_div.cpp）"),
        ("no answer in 2.5 s (--timeout-per-case); the device's process was ended",
         "2.5 秒内没有应答（--timeout-per-case）；设备进程已被终止"),
        ("strict: 4 elements of 6 outside the error bound, the worst 4.761 times the bound",
         "严格：6 个元素中 4 个超出误差界，最大为误差界的 4.761 倍"),
        ("NaN exactly where the golden is NaN: 3 elements not so; matched_ratio 0.5 (3 of 6) < 0.99",
         "仅在真值为 NaN 处为 NaN：3 个元素不符；通过率 matched_ratio 0.5（6 个中的 3 个）< 0.99"),
        ("gradOutput or self is read as if its strides were [1, 0], not [0, 1]",
         "读取 gradOutput 或 self 时如同其 stride 为 [1, 0]，而不是 [0, 1]"),
        ("gradInput is written as if it were contiguous: its strides are ignored",
         "写入 gradInput 时如同它是连续的：忽略了 stride"),
        ("the mean is divided by 30 (the size of gradOutput / axis 0), not by 120: all wrong by the factor 4.00005",
         "求平均时除以了 30（gradOutput 的元素个数 / 轴 0），而不是 120：整体相差 4.00005 倍"),
        ("all wrong by the factor 0.5, as if the attribute reduction is read as 1",
         "整体相差 0.5 倍，如同属性 reduction 被读成 1"),
        ("zero where one lane: element 3 of every 8: a share of the work is lost",
         "同一向量通道：每 8 个元素中的第 3 个处为零：有一部分计算任务丢失"),
        ("run 2: 3 of 4 elements of out differ", "第 2 次运行：out 的 4 个元素中有 3 个不同"),
        ("structure: out has dtype float32, expected float16", "结构：out 的 dtype 是 float32，应为 float16"),
        ("nobody has translated this", "nobody has translated this"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_phrase_of_a_record_is_found_by_its_form_and_by_its_parts(said: str, chinese: str) -> None:
    assert CHINESE.say(Phrase(said)) == chinese
    assert ENGLISH.say(Phrase(said)) == said


def test_every_phrase_has_its_chinese() -> None:
    assert [text for text in PHRASES if not CHARACTER.search(CHINESE.phrases[shape(text)])] == []


@pytest.mark.parametrize("said", [
    "gradOutput or self is read as if its strides were [1, 0], not [0, 1]",
    "self is read with its numbers below 2^-14 flushed to zero",
    "the mean is divided by 30 (the size of gradOutput), not by 120: all wrong by the factor 4.00005",
    "zero where every 2nd row from 0: a share of the work is lost",
    "elements are not written (scattered: 3 of 7)",
])  # fmt: skip
def test_a_page_in_english_gives_its_script_what_switches_a_sentence_about_names(said: str) -> None:
    page = Bilingual(ENGLISH)
    page.p(said)
    parts = [said] if shape(said) in page.phrases else said.split(": ")  # the script splits it in the same way
    assert "：".join(page.phrases[shape(p)].format(*FIGURE.findall(p)) for p in parts) == CHINESE.say(Phrase(said))


def test_no_sentence_about_names_hides_behind_an_earlier_one() -> None:
    """Each sentence, with names in its placeholders, is matched first by itself."""
    for text in SENTENCES:
        message = re.sub(r"\{\w+\}", "x", text)
        first = next(form for result, form in CHINESE.sentences if result.fullmatch(message))
        assert first == CHINESE.sentences[SENTENCES.index(text)][1], text


@in_full_alone
def test_what_is_told_of_wrong_kernels_is_told_in_chinese() -> None:
    """The whole text is Chinese: no English words are left, except names, types and codes."""
    ops = ("aclnnSoftmaxBackward", "aclnnNLLLossBackward")
    cases = tuple(case for case in select(load_all(tier="smoke"), tier="smoke") if case.op in ops)
    said = [failure.outcome.detail for failure in failures(chosen(ops, 3, 0), cases, Settings(), each=1)]
    sentences = {
        text for detail in said if detail is not None for text in (detail.cause, detail.pattern, detail.rule) if text
    }
    assert len(sentences) > 20
    english = {text: result for text in sentences if ENGLISH_WORDS.search(result := CHINESE.say(Phrase(text)))}
    assert english == {}


def masks() -> list[np.ndarray]:
    """Return bad elements for every rule of the patterns."""
    result = []
    for where in ((slice(None), slice(5, None)), (slice(1, 2),), (slice(1, 3),), (slice(None, None, 2),),
                  (slice(None), slice(1, None, 3)), (slice(None), slice(2, 3)), ([0, 3, 5],),
                  (slice(7, 8), slice(3, 4)), ([0, 3], [1, 2]), (slice(None),), (slice(6, None),)):  # fmt: skip
        bad = np.zeros((8, 8), bool)
        bad[where] = True
        result.append(bad)
    lane = np.zeros(64, bool)
    lane[3::8] = True
    flat = np.zeros(50, bool)
    flat[10:20] = True
    return [*result, lane, flat, np.ones(1, bool)]


@pytest.mark.parametrize("bad", masks())
def test_every_pattern_a_run_can_name_has_its_chinese(bad: np.ndarray) -> None:
    said = findings.pattern(bad)
    assert CHARACTER.search(CHINESE.say(Phrase(said))), said


def test_markdown_in_chinese_has_the_same_tables_and_commands(tmp_path: Path) -> None:
    cases = [*synthetic.catalogue(20), synthetic.failing("softmax_backward/wide_row[bfloat16-16x20000-dim=-1]")]
    record = read(synthetic.write(tmp_path / "run.jsonl", cases))
    english, chinese = summary.render([record]), summary.render([record], CHINESE)
    assert [line.count("|") for line in english.splitlines()] == [line.count("|") for line in chinese.splitlines()]
    assert re.findall("```.*?```", english, re.DOTALL) == re.findall("```.*?```", chinese, re.DOTALL)
    assert CHINESE.say(verdict(record)) in chinese
    assert "可能原因" in chinese


def test_a_text_reads_as_its_english_in_a_traceback() -> None:
    assert repr(Text("{a} b", params={"a": 1})) == "<Text '1 b'>"


def test_a_long_reason_is_translated_by_parts_in_no_time() -> None:
    parts = [f"step {word}: file: line" for word in "abcdefghijklmnopqrstuvwxyz"]
    began = CHINESE.phrase.cache_info().misses
    assert CHINESE.phrase("; ".join(parts)) == ""
    assert CHINESE.phrase.cache_info().misses - began < 2000  # each part once, and each rest


def test_a_reason_of_many_parts_is_taken_apart_once():
    """Alternating marks: every part is reached in many ways. Each additional part once doubled the time."""
    from oracle.reporting.html.page import _parts

    result = _parts("; ".join(f"part {k}: of it" for k in range(200)))
    assert {"part 0", "part 199", "of it", "part 199: of it"} <= result
    assert len(result) <= 5 * 200  # pieces begin after a mark, and end at either mark or at the end
