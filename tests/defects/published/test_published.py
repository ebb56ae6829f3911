"""Published defects of single operators: a case of the standard tier notices each."""

from __future__ import annotations

from oracle.case.one_case import outcome_on
from oracle.case.prepare import Prepared
from oracle.catalogue.loader import catalogues, load
from oracle.defects.registry import defects
from oracle.operators import OPERATORS
from oracle.settings.settings import Settings

NOTICED_BY = {
    "swish/whole beta": "swish_backward/public_example[float32-6-betaOptional=1.1]",
    "kl_div/mean of self": "kl_div_backward/summed[float32-3x1x4-reduction=1-axis]",
    "kl_div/batch mean of self": "kl_div_backward/summed[float32-3x1x4-reduction=3-leading]",
}


def test_a_truncated_beta_and_selfs_own_count_are_noticed() -> None:
    files = {path.stem: path for path in catalogues()}
    cases = {c.id: c for slug in ("swish_backward", "kl_div_backward") for c in load(files[slug])}
    entries = {d.id: d for name in ("aclnnSwishBackward", "aclnnKlDivBackward") for d in defects(name)}
    for defect, case in NOTICED_BY.items():
        result, soc = entries[defect], entries[defect].soc()
        assert soc is not None
        assert OPERATORS[result.op].slug == case.partition("/")[0]
        prepared = Prepared.make(cases[case], Settings(soc=soc))
        assert outcome_on(prepared, result.device).status == "fail", defect
