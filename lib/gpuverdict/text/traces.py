"""Sentences about traces: reading them, placing them in time, and what they say of the devices."""

# Chinese characters count twice in the line length.

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "zone_unknown": {
        "en": (
            "{name} has local time stamps without a zone: its samples cannot be placed in time.",
            "State the host's zone as `time_zone` (for example Asia/Shanghai).",
        ),
        "zh": (
            "{name} 的时间戳是本地时间且没有时区，样本无法与请求对齐。",
            "请用 `time_zone` 写明主机时区（例如 Asia/Shanghai）。",
        ),
    },
    "zone_ambiguous": {
        "en": (
            "{n} samples of {name} lie in the hour that {zone} passes twice, and nothing in the "
            "file tells which pass: they have no time.",
            "Record in UTC, or give the offset with a zone such as Etc/GMT+5.",
        ),
        "zh": (
            "{name} 中有 {n} 个样本落在 {zone} 重复的一小时内，文件无法说明是哪一次，这些样本没有时间。",
            "请用 UTC 记录，或用 Etc/GMT+5 这类固定偏移的时区。",
        ),
    },
    "zone_impossible": {
        "en": (
            "{n} time stamps of {name} do not exist in {zone} (the hour that is skipped in spring).",
            "Check `time_zone`: the host ran in another zone.",
        ),
        "zh": (
            "{name} 中有 {n} 个时间戳在 {zone} 不存在（春季被跳过的一小时）。",
            "请检查 `time_zone`：主机使用的是另一个时区。",
        ),
    },
    "clock_step": {
        "en": (
            "The clock of {name} was set (it went from {before} to {after}): the {n} samples after it "
            "keep their values but have no time.",
            "Joins use the part before the step. Keep the clock disciplined during a test.",
        ),
        "zh": (
            "{name} 的时钟被调整（从 {before} 跳到 {after}）：其后的 {n} 个样本保留数值，但没有时间。",
            "只用跳变之前的部分做对齐；测试期间请保持时钟同步。",
        ),
    },
    "time_absent": {
        "en": (
            "{name} holds no time stamps: its values cannot be joined with requests.",
            "Record with `-o DT`, or state `trace_start` (for example 2026-12-01T02:00:00Z/PT1S).",
        ),
        "zh": (
            "{name} 没有时间戳，数值无法与请求对齐。",
            "请用 `-o DT` 记录，或写明 `trace_start`（例如 2026-12-01T02:00:00Z/PT1S）。",
        ),
    },
    "trace_rows_dropped": {
        "en": (
            "{n} lines of {name} were not read ({reasons}; first at line {line}).",
            "Nothing else was dropped; look at the line if the count surprises.",
        ),
        "zh": (
            "{name} 有 {n} 行未读取（{reasons}；首个在第 {line} 行）。",
            "除此之外没有丢弃任何内容；如数量异常请查看该行。",
        ),
    },
    "trace_cut": {
        "en": (
            "{name} ends in the middle of a row after {n_bytes:,} bytes: the sampler was killed "
            "before it wrote its buffer, and up to several seconds at the end are missing.",
            "Stop the sampler with Ctrl-C or record with `gpuverdict record`.",
        ),
        "zh": (
            "{name} 在 {n_bytes:,} 字节处行中断：采样器在写出缓冲区之前被终止，末尾可能缺失数秒数据。",
            "请用 Ctrl-C 停止采样器，或使用 `gpuverdict record` 记录。",
        ),
    },
    "values_missing": {
        "en": (
            "{column} is missing in {n} of {n_rows} samples ({reasons}).",
            "Missing samples are left out, never counted as zero.",
        ),
        "zh": (
            "{n_rows} 个样本中有 {n} 个缺少 {column}（{reasons}）。",
            "缺失样本不参与计算，绝不当作 0。",
        ),
    },
    "gpu_unidentified": {
        "en": (
            "{name} names no GPU (neither uuid nor index): it is read as one GPU.",
            "Query `index,uuid` as well.",
        ),
        "zh": (
            "{name} 没有标明 GPU（无 uuid 也无 index），按单卡读取。",
            "请同时查询 `index,uuid`。",
        ),
    },
    "power_kind_unknown": {
        "en": (
            "{name} does not say which GPU model it is of, so `power.draw` may be an instantaneous "
            "value or a one-second average.",
            "Query `name,power.draw.average,power.draw.instant`.",
        ),
        "zh": (
            "{name} 未写明 GPU 型号，`power.draw` 可能是瞬时值，也可能是 1 秒平均值。",
            "请查询 `name,power.draw.average,power.draw.instant`。",
        ),
    },
    "mig_board_power": {
        "en": (
            "{name} is of a GPU split by MIG: its slices repeat the power of the board, which is "
            "counted once; utilisation is not reported under MIG.",
            "Energy is that of the whole board, not of a slice.",
        ),
        "zh": (
            "{name} 的 GPU 启用了 MIG：各切片重复报告整板功率，只计一次；MIG 下不报告利用率。",
            "能耗是整板的，不是某个切片的。",
        ),
    },
    "samples_repeated": {
        "en": (
            "{n} samples of {name} repeat the one before (scraped more often than refreshed) and "
            "were merged.",
            "Scrape no more often than the exporter refreshes.",
        ),
        "zh": (
            "{name} 有 {n} 个样本与前一个相同（抓取频率高于刷新频率），已合并。",
            "抓取间隔不要短于导出器的刷新间隔。",
        ),
    },
    "unit_assumed": {
        "en": (
            "{column} of {name} states no unit and was read as {unit} because of its size.",
            "Put the unit into the header (for example power_mw).",
        ),
        "zh": (
            "{name} 的 {column} 未写单位，根据数值大小按 {unit} 读取。",
            "请在表头写明单位（例如 power_mw）。",
        ),
    },
    "unit_uncertain": {
        "en": (
            "{column} of {name} is documented in two different units; it was read as {unit}.",
            "Use it to compare, not as an absolute time.",
        ),
        "zh": (
            "{name} 的 {column} 在不同文档中单位不一致，按 {unit} 读取。",
            "只用于相互比较，不作为绝对时间。",
        ),
    },
    "counter_restarted": {
        "en": (
            "The energy counter of {gpu} went back to a smaller value inside the window: the power "
            "samples were used instead.",
            "Do not reload the driver during a test.",
        ),
        "zh": (
            "{gpu} 的能量计数器在窗口内回退，改用功率样本积分。",
            "测试期间不要重新加载驱动。",
        ),
    },
    "profiling_absent": {
        "en": (
            "{metrics}: not available on this card ({gpu}).",
            "Compare only what both cards report.",
        ),
        "zh": ("{metrics}：该卡（{gpu}）不提供。", "只比较两张卡都报告的指标。"),
    },
    "layout_unverified": {
        "en": (
            "The layout of {name} ({dialect}) is known from documentation only, not from a real "
            "capture.",
            "Compare a few values with the screen output before trusting it.",
        ),
        "zh": (
            "{name}（{dialect}）的版式仅来自文档，未经真实采集验证。",
            "使用前请与屏幕输出核对几个数值。",
        ),
    },
    "no_clock": {
        "en": (
            "{name} has no wall-clock time, so requests and power samples cannot be joined.",
            "Use a client that records epoch times, or state `t0_epoch_s`.",
        ),
        "zh": (
            "{name} 没有挂钟时间，请求与功率样本无法对齐。",
            "请使用记录 epoch 时间的客户端，或写明 `t0_epoch_s`。",
        ),
    },
    "no_overlap": {
        "en": (
            "The run ({run_start} to {run_end} UTC) and the trace ({trace_start} to {trace_end} "
            "UTC) do not overlap.",
            "Check which trace belongs to the run.",
        ),
        "zh": (
            "运行（{run_start} 至 {run_end} UTC）与 trace（{trace_start} 至 {trace_end} UTC）没有重叠。",
            "请检查该运行对应的 trace。",
        ),
    },
    "zone_offset": {
        "en": (
            "Run and trace do not overlap, but would if the trace's clock were moved by "
            "{hours:+g} hours: `time_zone` looks wrong.",
            "State the zone of the host that recorded the trace; it is never shifted by guess.",
        ),
        "zh": (
            "运行与 trace 没有重叠，但若把 trace 时钟移动 {hours:+g} 小时则重叠：`time_zone` 可能写错。",
            "请写明记录 trace 的主机时区；程序不会擅自平移。",
        ),
    },
    "trace_partial": {
        "en": (
            "The trace covers {share:.0%} of the run ({missing_s:.1f} s are outside it).",
            "Start the sampler before the load and stop it after.",
        ),
        "zh": (
            "trace 只覆盖运行的 {share:.0%}（缺 {missing_s:.1f} 秒）。",
            "请在压测前启动采样、压测后停止。",
        ),
    },
    "trace_of_other_gpu": {
        "en": (
            "The trace is of {found}, the run of {expected}: they were not joined.",
            "Give the arm the trace of its own host.",
        ),
        "zh": (
            "trace 属于 {found}，而运行属于 {expected}：未做对齐。",
            "请使用该组自己主机的 trace。",
        ),
    },
    "clock_coarse": {
        "en": (
            "The start of the run is known to about {uncertainty_s:g} s only ({quality}).",
            "Windows shorter than 10 s cannot be joined with power this way.",
        ),
        "zh": (
            "运行起点只精确到约 {uncertainty_s:g} 秒（{quality}）。",
            "短于 10 秒的窗口不宜与功率对齐。",
        ),
    },
    "power_unaligned": {
        "en": (
            "Requests and power could not be aligned (peak correlation {peak:.2f}, second peak "
            "{second:.2f}): only whole-run energy is given.",
            "Record a stretch with one stream, or an idle stretch before and after.",
        ),
        "zh": (
            "请求与功率无法对齐（峰值相关 {peak:.2f}，次峰 {second:.2f}）：只给出整次运行能耗。",
            "请录一段单并发负载，或在前后各留一段空闲。",
        ),
    },
    "no_bracket": {
        "en": (
            "The window is not bracketed by samples of {gpu} (`no_bracket`): no energy.",
            "Start the sampler before the load and stop it after.",
        ),
        "zh": (
            "窗口两端没有 {gpu} 的样本包住（`no_bracket`），不给能耗。",
            "请在压测前启动采样、压测后停止。",
        ),
    },
    "gap": {
        "en": (
            "The samples of {gpu} have a gap of {gap_s:.1f} s in the window (`gap`): no energy.",
            "At most 3 s are allowed; sample every 100 ms.",
        ),
        "zh": (
            "窗口内 {gpu} 的样本有 {gap_s:.1f} 秒空缺（`gap`），不给能耗。",
            "最多允许 3 秒；请每 100 ms 采样一次。",
        ),
    },
    "gpu_count": {
        "en": (
            "The trace holds {found} GPUs, {expected} are declared (`gpu_count`): no power, memory or "
            "clock of the arm.",
            "Trace every GPU of the arm and no other, or name its UUIDs under `cards`.",
        ),
        "zh": (
            "trace 中有 {found} 张 GPU，声明为 {expected} 张（`gpu_count`），不给该组的功率、显存与时钟。",
            "请采集该组的全部 GPU，且只采集它们；或在 `cards` 中写明其 UUID。",
        ),
    },
    "too_few": {
        "en": (
            "Only {n} samples of {gpu} lie in the window (`too_few`), at least 3 are needed.",
            "Sample every 100 ms, or use a longer window.",
        ),
        "zh": (
            "窗口内 {gpu} 只有 {n} 个样本（`too_few`），至少需要 3 个。",
            "请每 100 ms 采样一次，或使用更长的窗口。",
        ),
    },
    "counter_mismatch": {
        "en": (
            "Power suspect: samples of {gpu} give {samples_j:.0f} J, its counter {counter_j:.0f} J "
            "(`counter_mismatch`); the counter was used.",
            "Check the interval and the column; an averaged column lags by about a second.",
        ),
        "zh": (
            "功率可疑：{gpu} 样本积分为 {samples_j:.0f} J，计数器为 {counter_j:.0f} J"
            "（`counter_mismatch`），采用计数器。",
            "请检查采样间隔与所用列；平均功率列约滞后 1 秒。",
        ),
    },
    "implausible": {
        "en": (
            "{power_w:.3g} W on average for {gpu} is outside {low_w:.0f} to {high_w:.0f} W "
            "(`implausible`): no energy.",
            "Look for a unit slip (mW for W, mJ for J).",
        ),
        "zh": (
            "{gpu} 平均 {power_w:.3g} W，超出 {low_w:.0f}–{high_w:.0f} W（`implausible`），不给能耗。",
            "请检查单位是否写错（mW 与 W、mJ 与 J）。",
        ),
    },
    "short_window": {
        "en": (
            "The window of {window_s:.1f} s is short for a power sensor: its gain error counts as "
            "5 % even on one card.",
            "Use windows of 10 s or more.",
        ),
        "zh": (
            "窗口仅 {window_s:.1f} 秒，对功率传感器偏短：即使同一张卡也按 5 % 增益误差计。",
            "请使用 10 秒以上的窗口。",
        ),
    },
    "averaged_short_window": {
        "en": (
            "Only one-second averages of power exist for {gpu}, and the window is {window_s:.1f} s: "
            "neighbouring work leaks into it.",
            "Use windows of 5 s or more, or record `power.draw.instant`.",
        ),
        "zh": (
            "{gpu} 只有 1 秒平均功率，而窗口为 {window_s:.1f} 秒，会混入相邻负载。",
            "请使用 5 秒以上的窗口，或记录 `power.draw.instant`。",
        ),
    },
    "averaged_power": {
        "en": (
            "Energy of {gpu} rests on one-second averages, moved back by half a second.",
            "Record `power.draw.instant` or the energy counter.",
        ),
        "zh": (
            "{gpu} 的能耗基于 1 秒平均功率（已前移半秒）。",
            "请记录 `power.draw.instant` 或能量计数器。",
        ),
    },
    "window_empty": {
        "en": ("The window ends before it starts.", "Give a start below the end."),
        "zh": ("窗口的终点早于起点。", "请给出小于终点的起点。"),
    },
    "column_absent": {
        "en": ("The trace has no {column} in the window.", "Record it as well."),
        "zh": ("窗口内的 trace 没有 {column}。", "请一并记录。"),
    },
    "busy_unknown": {
        "en": (
            "The trace has no utilisation: all samples of the window count as busy.",
            "Query `utilization.gpu` as well.",
        ),
        "zh": ("trace 没有利用率，窗口内所有样本都按忙碌计。", "请同时查询 `utilization.gpu`。"),
    },
    "few_busy_samples": {
        "en": (
            "Only {n} busy samples ({share:.0%} of the window): clocks are not judged on that.",
            "30 busy samples and half of the window are needed.",
        ),
        "zh": (
            "忙碌样本只有 {n} 个（占窗口 {share:.0%}），不足以判断时钟。",
            "需要 30 个忙碌样本且占窗口一半以上。",
        ),
    },
    "identity_title": {"en": ("{name} ({facts})", ""), "zh": ("{name}（{facts}）", "")},
    "identity_driver": {"en": ("driver {version}", ""), "zh": ("驱动 {version}", "")},
    "identity_declared_title": {
        "en": ("{label} (declared, not verified)", ""),
        "zh": ("{label}（仅声明，未核实）", ""),
    },
    "identity_declared": {
        "en": (
            "Nothing recorded says which cards ran: {label} is a declaration.",
            "Record `nvidia-smi -L`, `nvidia-smi topo -m` and `nvidia-smi -q -x` on the host.",
        ),
        "zh": (
            "没有任何记录说明实际运行的是哪些卡：{label} 仅为声明。",
            "请在主机上记录 `nvidia-smi -L`、`nvidia-smi topo -m` 和 `nvidia-smi -q -x`。",
        ),
    },
    "identity_model": {
        "en": (
            "Labelled {label}, but the device calls itself {found}: that is another product.",
            "Correct the label; until then nothing measured under it is compared.",
        ),
        "zh": (
            "标注为 {label}，但设备自报为 {found}：这是另一款产品。",
            "请更正标注；在此之前，该标注下的测量不参与比较。",
        ),
    },
    "identity_form_factor": {
        "en": (
            "Labelled {label}, but the device {found} is the {form} build: another board with "
            "another power budget and memory speed.",
            "Correct the label; results of the two builds are not interchangeable.",
        ),
        "zh": (
            "标注为 {label}，但设备 {found} 是 {form} 版：板卡不同，功率预算和显存带宽也不同。",
            "请更正标注；两种版本的结果不能互换。",
        ),
    },
    "identity_form_unverified": {
        "en": (
            "The device name {found} does not say whether this is the PCIe or the SXM build of "
            "{label}.",
            "Record `nvidia-smi -q -x`: the largest power limit of the board tells.",
        ),
        "zh": (
            "设备名 {found} 未说明是 {label} 的 PCIe 版还是 SXM 版。",
            "请记录 `nvidia-smi -q -x`：板卡的最大功率限制可以区分。",
        ),
    },
    "identity_memory": {
        "en": (
            "Labelled {label} with {memory_gb:.0f} GB, but the device has {found}: a variant or a "
            "modified card.",
            "Name the variant, or describe the card with its own figures; never take bandwidth or "
            "power of a modified card from a data sheet.",
        ),
        "zh": (
            "标注为 {label}（{memory_gb:.0f} GB），但设备显存为 {found}：属于其他型号或改装卡。",
            "请写明型号，或用实测参数描述该卡；改装卡的带宽和功率不能取自规格书。",
        ),
    },
    "identity_two_cards": {
        "en": (
            "Labelled {label} with {memory_gb:.0f} GB on one card, but the host has {count} cards of "
            "{each}: two cards joined by a link are not one card with twice the memory.",
            "Set `gpus: 2` and the label of the single card.",
        ),
        "zh": (
            "标注为单卡 {memory_gb:.0f} GB 的 {label}，但主机上是 {count} 张 {each} 的卡："
            "两张通过链路相连的卡不等于一张双倍显存的卡。",
            "请设 `gpus: 2`，并填写单卡的型号。",
        ),
    },
    "identity_one_card": {
        "en": (
            "Labelled {gpus} x {label}, but the host has {count} card of {each}: one (modified) card "
            "with twice the memory, not two cards.",
            "Set `gpus: 1` and describe the modified card with its own figures.",
        ),
        "zh": (
            "标注为 {gpus} 张 {label}，但主机上是 {count} 张 {each} 的卡：这是一张（改装的）双倍显存卡，"
            "不是两张卡。",
            "请设 `gpus: 1`，并用实测参数描述该改装卡。",
        ),
    },
    "identity_count": {
        "en": (
            "Labelled {declared} x {label}, but the devices recorded are {found}.",
            "Correct `gpus`, or record all cards of the arm.",
        ),
        "zh": (
            "标注为 {declared} 张 {label}，但记录到的设备为 {found} 张。",
            "请更正 `gpus`，或记录该组的全部卡。",
        ),
    },
    "identity_which_cards": {
        "en": (
            "The host has {found} cards and the arm uses {declared}: which ones is not recorded.",
            "Trace only the cards that serve, or set CUDA_VISIBLE_DEVICES and trace by UUID.",
        ),
        "zh": (
            "主机有 {found} 张卡，该组只用 {declared} 张，但没有记录是哪几张。",
            "请只采集参与服务的卡，或设置 CUDA_VISIBLE_DEVICES 并按 UUID 采集。",
        ),
    },
    "identity_mig": {
        "en": (
            "Labelled {label}, but the card {found} is split by MIG: a slice has a part of its "
            "memory and compute.",
            "Switch MIG off, or describe the slice with its own figures.",
        ),
        "zh": (
            "标注为 {label}，但 {found} 启用了 MIG：切片只有部分显存和算力。",
            "请关闭 MIG，或用切片自己的参数描述。",
        ),
    },
    "identity_mixed": {
        "en": (
            "Labelled {label}, but the cards differ among themselves: {found}.",
            "Use cards of one kind, or describe the mixture as its own product.",
        ),
        "zh": (
            "标注为 {label}，但各卡并不相同：{found}。",
            "请使用同一型号的卡，或将混合配置单独描述。",
        ),
    },
    "identity_other_host": {
        "en": (
            "The trace {name} is of cards that the inventory does not list: it is of another host.",
            "Give the arm the trace and the inventory of one host.",
        ),
        "zh": (
            "{name} 中的卡不在设备清单内：它来自另一台主机。",
            "请为该组提供同一台主机的 trace 和清单。",
        ),
    },
    "identity_power_capped": {
        "en": (
            "The cards run at an enforced limit of {limit_w:.0f} W, below their default of "
            "{default_w:.0f} W.",
            "The verdict is about the cards at this limit.",
        ),
        "zh": (
            "这些卡的实际功率上限为 {limit_w:.0f} W，低于默认的 {default_w:.0f} W。",
            "结论针对该功率上限下的卡。",
        ),
    },
    "identity_renamed": {
        "en": (
            "The default power limit of the device is {default_w:.0f} W, that of a {label} "
            "{tdp_w:.0f} W: another variant, or a card under another card's name.",
            "Check the board part number with `nvidia-smi -q`.",
        ),
        "zh": (
            "设备默认功率上限为 {default_w:.0f} W，而 {label} 应为 {tdp_w:.0f} W："
            "可能是其他型号，或改名的卡。",
            "请用 `nvidia-smi -q` 核对板卡部件号。",
        ),
    },
    "identity_cross_numa": {
        "en": (
            "The cards sit on different CPU sockets (link {links}): traffic between them crosses "
            "the sockets.",
            "Use a pair on one socket, or keep this as part of what is compared.",
        ),
        "zh": (
            "这些卡位于不同 CPU 插槽（链路 {links}），卡间通信要跨插槽。",
            "请使用同一插槽下的卡，或把它作为比较对象的一部分。",
        ),
    },
    "identity_no_nvlink": {
        "en": (
            "{label} can have NVLink, but these cards are joined by {links}.",
            "The link is part of what is compared; state it when you quote the result.",
        ),
        "zh": (
            "{label} 可以使用 NVLink，但这些卡之间的链路是 {links}。",
            "链路是比较对象的一部分；引用结果时请注明。",
        ),
    },
    "shared_card": {
        "en": (
            "{n} other processes held {memory_mib:,.0f} MiB on the card during the run: shared card.",
            "Repeat the run on a card of its own; the server's memory is taken by process id.",
        ),
        "zh": (
            "运行期间该卡上另有 {n} 个进程占用 {memory_mib:,.0f} MiB：共享卡。",
            "请在独占的卡上重测；服务端显存按进程号统计。",
        ),
    },
    "counters_since_start": {
        "en": (
            "There is only one metrics page: its counters cover everything since the server started.",
            "Save the page before and after a run.",
        ),
        "zh": (
            "只有一份指标页，其计数器覆盖服务启动以来的全部请求。",
            "请在运行前后各保存一份指标页。",
        ),
    },
    "counter_reset": {
        "en": (
            "A counter of the server went back between the two pages: it restarted in between.",
            "Take both pages from one server start.",
        ),
        "zh": (
            "两份指标页之间服务端计数器回退：期间服务重启过。",
            "请在同一次服务启动内取两份指标页。",
        ),
    },
    "unit_refused": {
        "en": (
            "{column} of {name} was not read: its unit cannot be told ({why}).",
            "Name the unit in the header (for example memory_used_mib), or map the column.",
        ),
        "zh": (
            "{name} 的 {column} 未读取：单位无法确定（{why}）。",
            "请在表头写明单位（例如 memory_used_mib），或用 `columns:` 映射。",
        ),
    },
    "idle_unknown": {
        "en": (
            "The idle power with the model loaded is not known, so energy cannot be split by phase.",
            "Record at least 10 s without load before and after the runs.",
        ),
        "zh": (
            "模型加载后的空闲功率未知，无法按阶段拆分能耗。",
            "请在运行前后各录制至少 10 秒的空载。",
        ),
    },
    "phase_energy_levels": {
        "en": (
            "{found} concurrency levels have power samples, {needed} are needed to split energy by "
            "phase.",
            "Sweep at least three levels, such as 1, 8 and 32 streams.",
        ),
        "zh": (
            "只有 {found} 个并发档位有功率样本，按阶段拆分能耗至少需要 {needed} 个。",
            "请至少扫三个档位，例如 1、8、32 路并发。",
        ),
    },
    "recorder_killed": {
        "en": (
            "{name} has no closing line: the recorder was killed; every row in it is whole.",
            "Stop it with Ctrl-C or SIGTERM.",
        ),
        "zh": (
            "{name} 没有结束行：记录器被强制终止；其中每一行都是完整的。",
            "请用 Ctrl-C 或 SIGTERM 停止。",
        ),
    },
    "one_card": {
        "en": (
            "{n} cards reported this: there is nothing to compare between cards.",
            "Trace every card of the arm.",
        ),
        "zh": ("只有 {n} 张卡报告该项，卡间无可比较。", "请采集该组的每张卡。"),
    },
    "supply_exceeded": {
        "en": (
            "The GPUs together drew {peak_w:,.0f} W at their peak, above the declared supply limit "
            "of {limit_w:,.0f} W.",
            "Cap the power of the cards, or raise the supply.",
        ),
        "zh": (
            "各 GPU 合计峰值功率 {peak_w:,.0f} W，超过声明的供电上限 {limit_w:,.0f} W。",
            "请限制显卡功率，或提高供电能力。",
        ),
    },
    "supply_close": {
        "en": (
            "The GPUs together drew {peak_w:,.0f} W at their peak, below the declared supply limit of "
            "{limit_w:,.0f} W by less than the sensor's error of 5 %.",
            "Measure at the supply, or leave more reserve.",
        ),
        "zh": (
            "各 GPU 合计峰值功率 {peak_w:,.0f} W，低于声明的供电上限 {limit_w:,.0f} W，但差距小于传感器误差（5 %）。",
            "请在供电侧测量，或留出更多余量。",
        ),
    },
    "peak_of_averages": {
        "en": (
            "The peak is one of one-second averages: shorter peaks were higher.",
            "Record power.draw.instant, or use `gpuverdict record`.",
        ),
        "zh": (
            "该峰值取自 1 秒平均功率，更短的尖峰会更高。",
            "请记录 power.draw.instant，或使用 `gpuverdict record`。",
        ),
    },
    "cards_not_together": {
        "en": (
            "The GPUs were never sampled at the same time: their sum is not known.",
            "Record all GPUs of the arm in one trace.",
        ),
        "zh": ("各 GPU 没有同时被采样，无法求和。", "请在同一份 trace 中采集该组的全部 GPU。"),
    },
    "mark_no_trace": {
        "en": (
            "{arm}: no GPU trace lies beside its runs.",
            "Run `gpuverdict record --out trace.csv --interval-ms 100` beside the load test, and name "
            "the file under `traces`.",
        ),
        "zh": (
            "{arm}：运行旁没有 GPU 采样记录。",
            "请在压测时同时运行 `gpuverdict record --out trace.csv --interval-ms 100`，并在 `traces` 中写明该文件。",
        ),
    },
    "mark_no_idle": {
        "en": (
            "{arm}: no memory sample in the {reach_s:.0f} s before its first request.",
            "Start `gpuverdict record` with the model loaded, and the load generator 10 s later.",
        ),
        "zh": (
            "{arm}：首个请求之前的 {reach_s:.0f} 秒内没有显存样本。",
            "请在模型加载完成后启动 `gpuverdict record`，10 秒后再启动压测工具。",
        ),
    },
    "mark_no_single": {
        "en": (
            "{arm}: no run with one request at a time.",
            "Add a level of concurrency 1 at the target context, before the higher ones.",
        ),
        "zh": (
            "{arm}：没有单路并发的运行。",
            "请增加一档目标上下文长度的单路并发，并排在更高档之前。",
        ),
    },
    "mark_after_load_of_others": {
        "en": (
            "{arm}: a larger load ran before the run with one request in the same server start, so "
            "that mark is an upper bound.",
            "Run the level with one request first after a server start.",
        ),
        "zh": (
            "{arm}：在同一次服务启动中，单请求运行之前已有更高负载，因此该标记只是上限。",
            "请在服务启动后首先运行单请求负载档。",
        ),
    },
    "growth_needs_soak": {
        "en": (
            "{arm}: memory growth is not measured; its longest run lasts {longest_s:,.0f} s, and "
            "{needed_s:,.0f} s are needed.",
            "Run one level for ten minutes or longer (hours for a leak) with the recorder on.",
        ),
        "zh": (
            "{arm}：显存增长未测量；最长的运行为 {longest_s:,.0f} 秒，至少需要 {needed_s:,.0f} 秒。",
            "请在采样开启的情况下让同一负载档持续十分钟以上（检查泄漏需数小时）。",
        ),
    },
    "growth_not_placed": {
        "en": (
            "{arm}: memory growth is not measured; no trace could be laid beside the long run.",
            "Record times with a zone in both, or use `gpuverdict record`.",
        ),
        "zh": (
            "{arm}：显存增长未测量；没有 trace 能与该长时间运行对齐。",
            "请在两边都记录带时区的时间，或使用 `gpuverdict record`。",
        ),
    },
    "trace_refused": {
        "en": (
            "The GPU trace of {arm} could not be used ({why}).",
            "See the notes of the table GPU by GPU.",
        ),
        "zh": ("组 {arm} 的 GPU 采样无法使用（{why}）。", "见“逐 GPU 对照”表的注释。"),
    },
    "trace_coverage": {
        "en": (
            "{arm}: {n} of {total} runs are not wholly covered by a trace.",
            "Let the recorder run from before the first request until after the last one.",
        ),
        "zh": (
            "{arm}：{total} 次运行中有 {n} 次没有被 trace 完整覆盖。",
            "请让采样从首个请求之前一直运行到最后一个请求之后。",
        ),
    },
}
