"""The imports of an operator's page: declarations, roles, checks, names elsewhere, and the functions of formulas.

A page begins with ``from oracle.page import ...`` and needs no other module of the package, here or in a repository of
your own. ``aclnn-oracle new-operator`` writes such a page.

A formula is a plain function. Its graph shows how the oracle reads it:

>>> from oracle.page import MAIN, SAME, Formula, Operator, exp, not_null, output, same_shape, sum_over, tensor, trace
>>> def formula(g, x):
...     return g * exp(x)
>>> trace(formula)
(g * exp(x))
>>> trace(lambda g, y: (g - sum_over(g * y)) * y)
((g - sum((g * y))) * y)

Checks are in the source's order. A page ends with the operator:

>>> def checks(a, platform):
...     yield not_null(a, "gradOutput", "self", "gradInput")
...     yield same_shape(a, "gradOutput", "self")
>>> OPERATOR = Operator(
...     name="aclnnMyThingBackward",
...     parameters=(tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN), output("gradInput")),
...     documented=("ascend910b", "ascend950"),
...     checks=checks,
...     empty=("self",),
...     computes=Formula(formula),
... )
>>> OPERATOR.slug, OPERATOR.outputs
('my_thing_backward', ('gradInput',))

If it is in your own module, a command finds it by ``--operator my_page:OPERATOR``.
"""

from __future__ import annotations

from .model.aclnn import Platform as Platform
from .model.call import Array as Array, TensorSpec as TensorSpec
from .model.dtypes import FORMATS as FORMATS, dtype_of as dtype_of
from .numerics.expressions import (
    PI as PI,
    Expression as Expression,
    Function as Function,
    constant as constant,
    equal as equal,
    erf as erf,
    erfc as erfc,
    exp as exp,
    expm1 as expm1,
    is_finite as is_finite,
    is_nan as is_nan,
    length as length,
    log as log,
    log1p as log1p,
    max_over as max_over,
    maximum as maximum,
    mean_over as mean_over,
    min_over as min_over,
    minimum as minimum,
    place as place,
    ratio as ratio,
    sign as sign,
    sqrt as sqrt,
    stored as stored,
    sum_of_rows as sum_of_rows,
    sum_over as sum_over,
    symbol as symbol,
    tanh as tanh,
    trace as trace,
    where as where,
)
from .numerics.orders.formula import COUNT as COUNT, Form as Form, Formula as Formula
from .numerics.orders.given import Given as Given
from .operators.definition.checks import (
    MAX_RANK as MAX_RANK,
    Args as Args,
    Check as Check,
    Checks as Checks,
    PageArguments as PageArguments,
    bfloat16_where_supported as bfloat16_where_supported,
    broadcast_shape as broadcast_shape,
    broadcast_together as broadcast_together,
    broadcasts_to as broadcasts_to,
    can_cast as can_cast,
    can_cast_promoted as can_cast_promoted,
    castable as castable,
    check as check,
    dtype_in as dtype_in,
    dtypes_in as dtypes_in,
    dtypes_of_a_row as dtypes_of_a_row,
    ends_if_all_empty as ends_if_all_empty,
    ends_if_empty as ends_if_empty,
    float_types as float_types,
    format_of_a_row as format_of_a_row,
    has_axes as has_axes,
    in_range as in_range,
    is_empty as is_empty,
    launched as launched,
    max_rank as max_rank,
    max_ranks as max_ranks,
    not_null as not_null,
    not_null_inside as not_null_inside,
    one_element as one_element,
    present as present,
    promoted as promoted,
    promoted_type as promoted_type,
    promotes as promotes,
    public_format as public_format,
    same_dtype as same_dtype,
    same_dtypes as same_dtypes,
    same_format as same_format,
    same_shape as same_shape,
    scalar_casts as scalar_casts,
    scalar_in as scalar_in,
    scalar_type as scalar_type,
    source_only as source_only,
    source_unless as source_unless,
    tiled as tiled,
    unconfigured as unconfigured,
)
from .operators.definition.losses import (
    broadcasting as broadcasting,
    common_room as common_room,
    common_shape as common_shape,
    common_size as common_size,
    filled as filled,
    gradient_per_sample as gradient_per_sample,
    has_rank as has_rank,
    loss_shape as loss_shape,
    one_number as one_number,
    reduced_shape as reduced_shape,
    size_of as size_of,
    widened as widened,
)
from .operators.definition.operands import float32 as float32
from .operators.definition.operator import Arguments as Arguments, Operator as Operator, Result as Result
from .operators.definition.parameters import (
    MEAN as MEAN,
    NONE as NONE,
    REDUCTIONS as REDUCTIONS,
    SUM as SUM,
    Aten as Aten,
    Forward as Forward,
    KernelName as KernelName,
    MindSpore as MindSpore,
    Parameter as Parameter,
    axis as axis,
    choice as choice,
    differentiated as differentiated,
    extent as extent,
    flag as flag,
    groups as groups,
    ignore_index as ignore_index,
    lengths as lengths,
    mask as mask,
    number as number,
    output as output,
    reduction as reduction,
    tensor as tensor,
    torch_npu as torch_npu,
)
from .operators.definition.roles import (
    BROADCAST as BROADCAST,
    CLASS_INDEX as CLASS_INDEX,
    HALF as HALF,
    LAST as LAST,
    MAIN as MAIN,
    MUTUAL as MUTUAL,
    ONE_VALUE as ONE_VALUE,
    PER_CHANNEL as PER_CHANNEL,
    PER_CLASS as PER_CLASS,
    PER_GROUP as PER_GROUP,
    PER_SAMPLE as PER_SAMPLE,
    ROWS as ROWS,
    SAME as SAME,
    UNREAD as UNREAD,
    Role as Role,
    Shape as Shape,
)
