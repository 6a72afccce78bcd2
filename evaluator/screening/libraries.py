"""The libraries that really ran, and whether the Problem allows them.

Three sources, none of them the calls in the Candidate's text. The operations that torch's dispatcher saw in one call,
and on a GPU the kernels that the driver's profiling interface saw, are claims of the child, but name libraries that do
not hide. On a CPU the judge itself samples the child at random moments of rounds like the timed ones: the function and
its file, from the kernel's mappings and the files' own tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evaluator.errors import Rejection
from evaluator.sandbox.symbols import is_library
from evaluator.types import LibraryPolicy, Problem, Stage, Verdict

# Operations of aten that are a library's work, not a combination of loops: the kernel is to replace them.
_OPERATIONS = frozenset(
    """
    mm addmm bmm baddbmm addbmm mv addmv addr dot vdot ger outer inner matmul linear einsum tensordot bilinear
    _trilinear thnn_conv2d mkldnn_linear _fft_r2c _fft_c2c
    convolution _convolution conv1d conv2d conv3d convolution_overrideable mkldnn_convolution cudnn_convolution
    conv_transpose1d conv_transpose2d conv_transpose3d slow_conv2d_forward _slow_conv2d_forward
    _softmax softmax _log_softmax log_softmax native_layer_norm layer_norm _fused_rms_norm rms_norm native_group_norm
    group_norm native_batch_norm _native_batch_norm_legit _batch_norm_with_update batch_norm cudnn_batch_norm
    nll_loss_forward nll_loss2d_forward cross_entropy_loss sort topk kthvalue median cumsum cumprod logcumsumexp cummax
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu scaled_dot_product_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention _scaled_dot_product_attention_math
    _weight_int8pack_mm _weight_int4pack_mm _int_mm _scaled_mm _grouped_mm _scaled_grouped_mm _embedding_bag
    _embedding_bag_forward_only embedding_bag lstm gru rnn_tanh rnn_relu _thnn_fused_lstm_cell mkldnn_rnn_layer
    max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d linalg_multi_dot linalg_qr linalg_svd
    _linalg_svd linalg_eigh _linalg_eigh linalg_cholesky_ex linalg_lu_factor_ex linalg_solve_triangular
    _sparse_mm _sparse_addmm _sparse_sparse_matmul sparse_sampled_addmm hspmm sspaddmm linalg_matrix_exp _cdist_forward
    _fft_c2r histc bincount unique_dim _unique2
    _sparse_mm_reduce_impl _addmm_activation _pdist_forward conv_tbc _conv_depthwise2d conv_depthwise3d
    slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d
    _native_multi_head_attention _transformer_encoder_layer_fwd _flash_attention_forward _efficient_attention_forward
    _cudnn_attention_forward _scaled_dot_product_fused_attention_overrideable _triton_multi_head_attention
    _triton_scaled_dot_attention _cudnn_rnn _thnn_fused_gru_cell _cslt_sparse_mm _mixed_dtypes_linear
    _sparse_semi_structured_linear _sparse_semi_structured_mm _sparse_semi_structured_addmm _dyn_quant_matmul_4bit
    _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros _scaled_mm_v2 _scaled_grouped_mm_v2
    fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_fp16_weight
    fbgemm_linear_fp16_weight_fp32_activation cudnn_convolution_relu cudnn_convolution_add_relu
    cudnn_convolution_transpose cholesky cholesky_inverse _cholesky_solve_helper triangular_solve geqrf ormqr
    linalg_householder_product linalg_inv_ex _linalg_solve_ex linalg_lu linalg_lu_solve linalg_ldl_solve linalg_lstsq
    linalg_eig _linalg_eigvals _linalg_det _linalg_slogdet
    """.split()  # noqa: SIM905  a list of a hundred strings is harder to read
)
# Kernels of cuBLAS, cuDNN, cuFFT, cuSPARSE and cuSOLVER, as far as their names tell.
_KERNELS = re.compile(
    r"cublas|cudnn|cusparse|cusolver|cufft|cutlass_?\d|xmma_|nvjet_|magma_\w*gemm|gemv2[TN]_|gemvNSP_|gemvx::|gemmSN_|gemmk1_"
    r"|gemm_kernel1x1|splitKreduce|(volta|turing|ampere|maxwell|hopper|sm\d\d)_\w*(gemm|gemv|conv|fft|scudnn)"
    r"|implicit_convolve_|(vector|regular|multi_bluestein)_fft"
)
_LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\s*\([^)]*\)")
_DEFINED = re.compile(r"__global__[^;{]*?\b(\w+)\s*\(|^\s*def\s+(\w+)", re.MULTILINE)
_LEAST_SAMPLES = 2  # an honest kernel is never found there; once may be an ambiguous address


def library_operations(operations: Iterable[str]) -> list[str]:
    """Return those of torch's operations that belong to a library."""
    found = {name for name in operations if name.rpartition(".")[2] in _OPERATIONS}
    return sorted(name.replace("aten.", "aten::") for name in found)


def library_kernels(launched: Iterable[str], source: str) -> list[str]:
    """Return those of the launched kernels that belong to a vendor library. A Candidate's own kernels may have any
    name."""
    own = {name for pair in _DEFINED.findall(_LAUNCH_BOUNDS.sub(" ", source)) for name in pair if name}
    return sorted({name for name in launched if _KERNELS.search(name) and _plain_name(name) not in own})


def _plain_name(kernel: str) -> str:
    """Return the function's own name from a demangled one: "void space::name<float>(float*)"."""
    words = re.split(r"[<(]", kernel, maxsplit=1)[0].replace("::", " ").split()
    return words[-1] if words else ""


def sampled_libraries(places: Mapping[str, int]) -> list[str]:
    """Return the places in a vendor library, if the child was found in such places more than once."""
    found = {place: count for place, count in places.items() if is_library(place)}
    return sorted(found) if sum(found.values()) >= _LEAST_SAMPLES else []


def check_policy(problem: Problem, libraries: Iterable[str], stage: Stage) -> None:
    """Raise Rejection where the Problem forbids the libraries that ran."""
    found = sorted(set(libraries))
    if found and problem.allow_library is LibraryPolicy.FORBIDDEN:
        reason = f"the problem forbids library calls; it ran {', '.join(found)[:300]}"
        raise Rejection(Verdict.POLICY_VIOLATION, stage, reason, check="library", libraries=found[:50])
