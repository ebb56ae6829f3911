"""What everyone who puts a device behind a backend needs: what the device takes, arrays there and back, the result.

    takes = Takes("my kernels", operators=("aclnn...",), dtypes=("float16", "float32"), views=False)
    takes.reason(call)                      why a call is to be skipped, or None
    computes(call)                          whether a right device writes anything in a call
    sent(array, make, as_strided)           a framework's tensor of an array, bfloat16 and the view kept
    bits(array), from_bits(bits, dtype)     bfloat16 for a framework that has no ml_dtypes
    store(call, result)                     the results into the call's outputs, cast as the host casts them

docs/adding-a-backend.md has a worked example of each.
"""

from .arrays import Strided, bits, from_bits, sent, store, strided
from .takes import Takes, computes

__all__ = ["Strided", "Takes", "bits", "computes", "from_bits", "sent", "store", "strided"]
