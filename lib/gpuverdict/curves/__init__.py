"""Step time and throughput against batch: models, fits, bands, crossover."""

from __future__ import annotations

from gpuverdict.curves.compare import CurveComparison, Span, compare_curves
from gpuverdict.curves.fit import CurveFit, fit_curve, fit_throughput_curve
from gpuverdict.curves.models import MODELS, ModelFit, fit_model

__all__ = [
    "MODELS",
    "CurveComparison",
    "CurveFit",
    "ModelFit",
    "Span",
    "compare_curves",
    "fit_curve",
    "fit_model",
    "fit_throughput_curve",
]
