"""A driver that answers from a script: two H200-like cards, or one A100-like without new fields."""

# The names are the driver library's.
# ruff: noqa: N802, N815

from __future__ import annotations

import time
from types import SimpleNamespace

NVML_SUCCESS = 0
NVML_VALUE_TYPE_DOUBLE, NVML_VALUE_TYPE_UNSIGNED_INT = 0, 1
NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3
NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT = 185, 186
NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, NVML_FI_DEV_MEMORY_TEMP = 83, 82
NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1


class NVMLError(Exception):
    """As the library's own."""


class FakeNvml:
    """Energy runs at `watts` per card since the driver was loaded."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 0x2000028

    def __init__(self, cards: int = 2, *, modern: bool = True, watts: float = 300.0) -> None:
        self.cards, self.modern, self.watts = cards, modern, watts
        self.born, self.running, self.lost = time.monotonic(), 0, False
        for name, value in globals().items():
            if name.startswith("NVML_"):
                setattr(self, name, value)

    def nvmlInit(self) -> None:
        self.running += 1

    def nvmlShutdown(self) -> None:
        self.running -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.159.04"

    def nvmlDeviceGetCount(self) -> int:
        return self.cards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA H200" if self.modern else "NVIDIA A100-SXM4-80GB"

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=b"00000000:17:00.0")

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return 700_000

    def nvmlDeviceGetFieldValues(self, handle: int, wanted: list[int]) -> list[SimpleNamespace]:
        self._alive()
        if not self.modern:
            return [SimpleNamespace(nvmlReturn=3, valueType=0, value=None) for _ in wanted]
        answers = {
            185: (1, int(self.watts * 1000) + handle),
            186: (1, int(self.watts * 1000) + 500 + handle),
            83: (3, int((time.monotonic() - self.born) * self.watts * 1000)),
            82: (1, 45),
        }
        return [
            SimpleNamespace(
                nvmlReturn=NVML_SUCCESS,
                valueType=answers[key][0],
                value=SimpleNamespace(uiVal=answers[key][1], ullVal=answers[key][1]),
            )
            for key in wanted
        ]

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return int(self.watts * 1000)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        return int((time.monotonic() - self.born) * self.watts * 1000)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        self._alive()
        return SimpleNamespace(gpu=97, memory=60)

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        return 1980 if kind == NVML_CLOCK_SM else 3201

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:
        return 60

    def nvmlDeviceGetPerformanceState(self, handle: int) -> int:
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> SimpleNamespace:
        return SimpleNamespace(total=143771 * 2**20, used=(88643 + (version is None)) * 2**20)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        if not self.modern:
            raise NVMLError("Function Not Found")
        return 0x4

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        return 0x20

    def nvmlDeviceGetFanSpeed(self, handle: int) -> int:
        raise NVMLError("Not Supported")

    def nvmlDeviceGetPcieThroughput(self, handle: int, kind: int) -> int:
        return 2000 if kind == NVML_PCIE_UTIL_RX_BYTES else 1000

    def _alive(self) -> None:
        if self.lost:
            raise NVMLError("GPU is lost")
