"""The table of the diagnosis, to be edited freely: symptom, remedy, proof, check, both languages.

`<code>`: (what binds and why we think so, what to try first). `<code>_proof`: (what would confirm
it, the measurement that would show that the remedy worked).
"""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "binds_bandwidth": {
        "en": (
            "{arm}: decode is bound by memory bandwidth: a step of {step_ms:.2f} ms reads "
            "{share:.0%} of what the data sheet allows.",
            "Fewer bytes a step: quantise the weights or the KV cache, or raise the batch.",
        ),
        "zh": (
            "{arm}：解码受显存带宽限制：每步 {step_ms:.2f} ms，读取量已达标称带宽的 {share:.0%}。",
            "减少每步读取的字节：量化权重或 KV cache，或增大批大小。",
        ),
    },
    "binds_bandwidth_proof": {
        "en": (
            "DRAM activity above 60 % with tensor activity below 30 % (DCGM) would confirm it.",
            "Decode step at one stream, before and after: it must fall with the bytes read.",
        ),
        "zh": (
            "若 DCGM 显示 DRAM 活跃度高于 60 % 而 tensor 活跃度低于 30 %，即可确认。",
            "对比前后并发 1 的解码步时：应随读取字节数下降。",
        ),
    },
    "impossible_step": {
        "en": (
            "{arm}: a step of {step_ms:.2f} ms would have to read {share:.0%} of what the card can: "
            "the label of the card, the model's shape or the precision is wrong.",
            "Correct `gpu`, `model` or `precision` in the campaign file.",
        ),
        "zh": (
            "{arm}：{step_ms:.2f} ms 的解码步需要达到显卡带宽的 {share:.0%}：显卡标签、模型结构或精度有误。",
            "请更正 campaign.yaml 中的 `gpu`、`model` 或 `precision`。",
        ),
    },
    "impossible_step_proof": {
        "en": (
            "`nvidia-smi -q -x` of the host and the model's config would show which.",
            "The share of the bandwidth at one stream: it must lie below 100 %.",
        ),
        "zh": (
            "主机的 `nvidia-smi -q -x` 与模型 config 可以说明是哪一项。",
            "并发 1 的带宽占比：应低于 100 %。",
        ),
    },
    "binds_launch": {
        "en": (
            "{arm}: one stream's step takes {step_ms:.2f} ms where its bytes need {floor_ms:.2f} "
            "ms ({share:.0%} of the bandwidth): kernel launches, small kernels or the host bind.",
            "Switch CUDA graphs (or a compiled step) on, and check the host's clock and load.",
        ),
        "zh": (
            "{arm}：并发 1 的解码步耗时 {step_ms:.2f} ms，而读取数据只需 {floor_ms:.2f} ms"
            "（带宽利用 {share:.0%}）：受内核启动、小内核或主机限制。",
            "启用 CUDA graphs（或编译后的解码步），并检查主机频率与负载。",
        ),
    },
    "binds_launch_proof": {
        "en": (
            "A profile with gaps between kernels, or a step that hardly grows with the batch, "
            "would confirm it.",
            "Decode step at one stream, before and after: it must come near its floor.",
        ),
        "zh": (
            "若 profile 中内核之间存在空隙，或步时几乎不随批大小增长，即可确认。",
            "对比前后并发 1 的解码步时：应接近下限。",
        ),
    },
    "binds_kv_cache": {
        "en": (
            "{arm}: the KV cache is {used:.0%} full ({preemptions:.0f} preemptions) while compute "
            "idles (activity {idle:.0%}).",
            "Give the KV cache more room: lower precision of KV or weights, or shorter contexts.",
        ),
        "zh": (
            "{arm}：KV cache 占用 {used:.0%}（抢占 {preemptions:.0f} 次），而计算单元空闲"
            "（活跃度 {idle:.0%}）。",
            "为 KV cache 腾出空间：降低 KV 或权重精度，或缩短上下文。",
        ),
    },
    "binds_kv_cache_proof": {
        "en": (
            "A running-requests gauge that stays below the limit while requests wait confirms it.",
            "Running requests and output tokens/s at the same level must rise, preemptions fall.",
        ),
        "zh": (
            "若运行中请求数始终低于上限而仍有请求排队，即可确认。",
            "同一并发级别下，运行中请求数与输出吞吐应上升，抢占次数应下降。",
        ),
    },
    "binds_queue": {
        "en": (
            "{arm}: tokens flow evenly, but TTFT p99 is {p99_ms:.0f} ms against a median of "
            "{p50_ms:.0f} ms, and requests wait {wait_ms:.0f} ms on average: the queue.",
            "Lower the load of the server or let it prefill more at a time.",
        ),
        "zh": (
            "{arm}：token 输出平稳，但 TTFT p99 为 {p99_ms:.0f} ms，中位数 {p50_ms:.0f} ms，"
            "请求平均等待 {wait_ms:.0f} ms：瓶颈在排队。",
            "降低单实例负载，或提高每步预填充的 token 上限。",
        ),
    },
    "binds_queue_proof": {
        "en": (
            "The server's own queue time (request_queue_time) would confirm it.",
            "TTFT p99 at the same offered load must fall towards its median.",
        ),
        "zh": (
            "服务端的排队时间（request_queue_time）可以确认。",
            "相同负载下 TTFT p99 应向中位数靠拢。",
        ),
    },
    "binds_mixed_lengths": {
        "en": (
            "{arm}: TTFT p99 is {p99_ms:.0f} ms against a median of {p50_ms:.0f} ms while tokens "
            "flow evenly, and prompts differ in length by a factor of {spread:.1f}: short requests "
            "wait behind long ones.",
            "Chunk the prefill, or send long and short prompts to different instances.",
        ),
        "zh": (
            "{arm}：TTFT p99 为 {p99_ms:.0f} ms，中位数 {p50_ms:.0f} ms，而 token 输出平稳；"
            "提示词长度相差 {spread:.1f} 倍：短请求在长请求后面等待。",
            "启用分块预填充，或将长短请求分到不同实例。",
        ),
    },
    "binds_mixed_lengths_proof": {
        "en": (
            "TTFT by prompt length: short prompts with the tail of long ones would confirm it.",
            "TTFT p99 of the short prompts alone, before and after.",
        ),
        "zh": (
            "按提示词长度查看 TTFT：若短提示词也出现长提示词的尾部，即可确认。",
            "对比前后仅短提示词的 TTFT p99。",
        ),
    },
    "binds_host": {
        "en": (
            "{arm}: TTFT p99 is {p99_ms:.0f} ms against a median of {p50_ms:.0f} ms, and "
            "{host_ms:.0f} ms of it is work of the host (tokenising, retrieval).",
            "Move that work off the request path, or give the host more cores.",
        ),
        "zh": (
            "{arm}：TTFT p99 为 {p99_ms:.0f} ms，中位数 {p50_ms:.0f} ms，"
            "其中 {host_ms:.0f} ms 是主机侧工作（分词、检索）。",
            "把这部分工作移出请求路径，或增加主机 CPU 核心。",
        ),
    },
    "binds_host_proof": {
        "en": (
            "Host CPU use near its limit in the slow moments would confirm it.",
            "TTFT minus the server's own time to first token, before and after.",
        ),
        "zh": (
            "若慢请求出现时主机 CPU 接近满载，即可确认。",
            "对比前后 TTFT 与服务端首 token 时间之差。",
        ),
    },
    "binds_network": {
        "en": (
            "{arm}: TTFT p99 is {p99_ms:.0f} ms against a median of {p50_ms:.0f} ms, and the round "
            "trip alone takes {rtt_ms:.0f} ms.",
            "Put the load generator beside the server.",
        ),
        "zh": (
            "{arm}：TTFT p99 为 {p99_ms:.0f} ms，中位数 {p50_ms:.0f} ms，"
            "仅网络往返就占 {rtt_ms:.0f} ms。",
            "将压测客户端放到服务器旁边。",
        ),
    },
    "binds_network_proof": {
        "en": (
            "The same load from the server's own host would confirm it.",
            "TTFT p99 from both places: it must fall by more than the round trip.",
        ),
        "zh": (
            "在服务器本机发起同样的负载可以确认。",
            "对比两处的 TTFT p99：下降应超过网络往返时间。",
        ),
    },
    "binds_tail_unknown": {
        "en": (
            "{arm}: tokens flow evenly, but TTFT p99 is {p99_ms:.0f} ms against a median of "
            "{p50_ms:.0f} ms; the log cannot tell queue, host and network apart.",
            "Record the server's queue time beside the client's log.",
        ),
        "zh": (
            "{arm}：token 输出平稳，但 TTFT p99 为 {p99_ms:.0f} ms，中位数 {p50_ms:.0f} ms；"
            "日志无法区分排队、主机与网络。",
            "请同时记录服务端的排队时间。",
        ),
    },
    "binds_tail_unknown_proof": {
        "en": (
            "Server metrics, host CPU use and a round-trip time would tell which of them it is.",
            "TTFT p99 after the one that is found has been relieved.",
        ),
        "zh": (
            "服务端指标、主机 CPU 占用与网络往返时间可以指明是哪一个。",
            "消除对应瓶颈后再测 TTFT p99。",
        ),
    },
    "binds_feeding": {
        "en": (
            "{arm}: the GPU is idle ({util:.0%} utilised) while requests wait, with {streams:.0f} "
            "in flight.",
            "Look for what feeds it: scheduler limits, a single-threaded front end, the host.",
        ),
        "zh": (
            "{arm}：有 {streams:.0f} 个请求在途并等待，而 GPU 空闲（利用率 {util:.0%}）。",
            "检查供给环节：调度上限、单线程前端、主机侧处理。",
        ),
    },
    "binds_feeding_proof": {
        "en": (
            "A host core at 100 % or a running-requests gauge at its limit would confirm it.",
            "GPU utilisation and output tokens/s at the same level must both rise.",
        ),
        "zh": (
            "若某个 CPU 核心满载，或运行中请求数达到上限，即可确认。",
            "同一级别下 GPU 利用率与输出吞吐应同时上升。",
        ),
    },
    "binds_heat_or_cap": {
        "en": (
            "{arm}: the run gets {slower:.1%} slower under way, and the device slows itself down "
            "({throttled:.0%} of busy samples throttled, or at the power limit).",
            "Improve cooling, or raise the power limit, and let the card warm up before measuring.",
        ),
        "zh": (
            "{arm}：运行过程中变慢 {slower:.1%}，且设备自身降频"
            "（{throttled:.0%} 的忙碌样本处于降频，或已到功率上限）。",
            "改善散热或提高功率上限，并在测量前让显卡达到热稳态。",
        ),
    },
    "binds_heat_or_cap_proof": {
        "en": (
            "Clocks, temperature and throttle reasons over the same minutes would confirm it.",
            "TPOT p50 of the last tenth against the first of a run of twenty minutes.",
        ),
        "zh": (
            "同一时段的时钟、温度与降频原因可以确认。",
            "在二十分钟的运行中比较最后十分之一与最初十分之一的 TPOT p50。",
        ),
    },
    "binds_late_spikes": {
        "en": (
            "{arm}: stalls between tokens are {factor:.1f} times as frequent after half an hour.",
            "Limit or flush caches, and look at evictions and fragmentation of the allocator.",
        ),
        "zh": (
            "{arm}：半小时之后，token 间停顿的频率是之前的 {factor:.1f} 倍。",
            "限制或清理缓存，检查缓存驱逐与分配器碎片。",
        ),
    },
    "binds_late_spikes_proof": {
        "en": (
            "Cache evictions or free-memory fragmentation that rise at that time confirm it.",
            "Spikes per 1,000 gaps in each quarter of an hour of a two-hour run.",
        ),
        "zh": (
            "若同一时间缓存驱逐或显存碎片上升，即可确认。",
            "在两小时的运行中，统计每一刻钟每千个间隔的尖峰数。",
        ),
    },
    "binds_client": {
        "en": (
            "{arm}: {asked:.0f} streams were asked for, {seen:.1f} are seen (before: "
            "{before:.1f}) and throughput stays flat: the client is saturated.",
            "Use more client processes or a faster client, on another host.",
        ),
        "zh": (
            "{arm}：要求 {asked:.0f} 路并发，实测 {seen:.1f}（上一级为 {before:.1f}），"
            "吞吐不再增长：客户端已饱和。",
            "增加客户端进程或换用更快的客户端，并放到另一台主机。",
        ),
    },
    "binds_client_proof": {
        "en": (
            "A client core at 100 % while the GPU has time would confirm it.",
            "Observed concurrency must reach what was asked for.",
        ),
        "zh": (
            "若客户端 CPU 核心满载而 GPU 有空闲，即可确认。",
            "实测并发应达到要求的并发。",
        ),
    },
    "binds_client_late": {
        "en": (
            "{arm}: the client sends late (p99 {late_ms:.1f} ms, limit {limit_ms:.1f} ms): it sets "
            "the pace, not the server.",
            "Use more client processes or a faster client.",
        ),
        "zh": (
            "{arm}：客户端发送滞后（p99 {late_ms:.1f} ms，上限 {limit_ms:.1f} ms）："
            "节奏由客户端而非服务端决定。",
            "增加客户端进程或换用更快的客户端。",
        ),
    },
    "binds_client_late_proof": {
        "en": (
            "The same rate from two clients would confirm it.",
            "Send lateness p99 must fall below the limit at the same rate.",
        ),
        "zh": (
            "用两个客户端以相同速率发送可以确认。",
            "相同速率下，发送滞后 p99 应低于上限。",
        ),
    },
    "binds_decode_not_prefill": {
        "en": (
            "{arm}: prefill is fast ({prefill:.2f} of {other}'s time) and decode slow "
            "({decode:.2f} of it): compute is there, memory bandwidth is not.",
            "Use it for prefill or short outputs; quantise the weights for decode.",
        ),
        "zh": (
            "{arm}：预填充快（为 {other} 的 {prefill:.2f} 倍时间），解码慢（{decode:.2f} 倍）："
            "算力充足而显存带宽不足。",
            "用于预填充或短输出任务；解码侧可量化权重。",
        ),
    },
    "binds_decode_not_prefill_proof": {
        "en": (
            "The ratio of the two data sheets' bandwidths near that of the steps confirms it.",
            "Decode step at one stream with 8-bit weights: it must nearly halve.",
        ),
        "zh": (
            "若两者标称带宽之比接近解码步时之比，即可确认。",
            "使用 8 位权重测并发 1 的解码步时：应接近减半。",
        ),
    },
    "binds_interconnect": {
        "en": (
            "{arm}: {cards} cards give {gain:.2f} times the throughput of {other}: the link "
            "between them ({link}) or the split holds them back.",
            "Run one instance a card (data parallel), or cards with a faster link.",
        ),
        "zh": (
            "{arm}：{cards} 张卡的吞吐仅为 {other} 的 {gain:.2f} 倍：卡间互连（{link}）或切分方式受限。",
            "改为每卡一个实例（数据并行），或使用互连更快的卡。",
        ),
    },
    "binds_interconnect_proof": {
        "en": (
            "PCIe or NVLink traffic at its limit during decode would confirm it.",
            "Throughput of both layouts at the same total load.",
        ),
        "zh": (
            "若解码期间 PCIe 或 NVLink 流量达到上限，即可确认。",
            "在相同总负载下比较两种部署的吞吐。",
        ),
    },
    "binds_kernel_path": {
        "en": (
            "{arm}: {bandwidth:.2f} times the bandwidth of {other}, and yet a step takes "
            "{ratio:.2f} times as long: a slow kernel or quantisation path ({precision}).",
            "Try the native precision of the card, or another kernel backend.",
        ),
        "zh": (
            "{arm}：带宽是 {other} 的 {bandwidth:.2f} 倍，但每步耗时为其 {ratio:.2f} 倍："
            "内核或量化路径（{precision}）较慢。",
            "改用该卡原生支持的精度，或更换内核后端。",
        ),
    },
    "binds_kernel_path_proof": {
        "en": (
            "A profile of one decode step with kernels that convert formats would confirm it.",
            "Decode step at one stream with the other kernel, same prompts.",
        ),
        "zh": (
            "若单个解码步的 profile 中出现格式转换类内核，即可确认。",
            "使用另一内核、相同提示词，测并发 1 的解码步时。",
        ),
    },
    "binds_copied_settings": {
        "en": (
            "{arm}: it runs with the limits of the larger {other} ({settings}) and pays for it: "
            "{preemptions:.0f} preemptions, {errors:.1%} errors.",
            "Scale the limits to its memory: fewer sequences, a smaller batch of tokens.",
        ),
        "zh": (
            "{arm}：沿用了显存更大的 {other} 的参数（{settings}），并因此受损："
            "抢占 {preemptions:.0f} 次，错误率 {errors:.1%}。",
            "按其显存缩小上限：减少最大序列数与每批 token 数。",
        ),
    },
    "binds_copied_settings_proof": {
        "en": (
            "KV-cache use near 100 % before each preemption would confirm it.",
            "Preemptions and TTFT p99 at the same level must fall.",
        ),
        "zh": (
            "若每次抢占前 KV cache 占用接近 100 %，即可确认。",
            "同一级别下抢占次数与 TTFT p99 应下降。",
        ),
    },
    "binds_host_cpu": {
        "en": (
            "{arm}: the host's cores are {busy:.0%} busy (run queue {queue:.0f}) while the GPU is "
            "at {gpu:.0%}: the CPU holds the GPU back.",
            "Give the server more cores, or move load generator, tokenising and retrieval to "
            "another host.",
        ),
        "zh": (
            "{arm}：主机 CPU 占用 {busy:.0%}（运行队列 {queue:.0f}），而 GPU 利用率仅 {gpu:.0%}："
            "CPU 拖住了 GPU。",
            "为服务增加 CPU 核心，或把压测客户端、分词与检索移到另一台主机。",
        ),
    },
    "binds_host_cpu_proof": {
        "en": (
            "`pidstat 1` beside the run, with the processes that use the cores, would confirm it.",
            "GPU utilisation and output tokens/s at the same level, with cores to spare.",
        ),
        "zh": (
            "运行时用 `pidstat 1` 查看占用 CPU 的进程即可确认。",
            "CPU 有余量时，同一级别的 GPU 利用率与输出吞吐。",
        ),
    },
    "binds_host_core": {
        "en": (
            "{arm}: one core is {busy:.0%} busy {named}while the GPU is at {gpu:.0%} and other "
            "cores have time: a single thread (scheduler, tokeniser, client) holds the GPU back.",
            "Run the front end in several processes, or choose a host with a faster core.",
        ),
        "zh": (
            "{arm}：单个核心占用 {busy:.0%} {named}而 GPU 利用率仅 {gpu:.0%}，其他核心有空闲："
            "单线程环节（调度、分词或客户端）拖住了 GPU。",
            "将前端改为多进程，或换用单核更快的主机。",
        ),
    },
    "binds_host_core_proof": {
        "en": (
            "`pidstat -t 1` with one thread of the server or the client at 100 % would confirm it.",
            "GPU utilisation and decode step at the same level, with that thread relieved.",
        ),
        "zh": (
            "若 `pidstat -t 1` 显示服务端或客户端的某个线程达到 100 %，即可确认。",
            "减轻该线程负担后，同一级别的 GPU 利用率与解码步时。",
        ),
    },
    "binds_host_io": {
        "en": (
            "{arm}: the host's cores wait for the disk {wait:.0%} of the time under load.",
            "Keep weights, logs and offloaded KV cache off that disk, or use a faster one.",
        ),
        "zh": (
            "{arm}：负载期间主机 CPU 有 {wait:.0%} 的时间在等待磁盘。",
            "将权重、日志与卸载的 KV cache 移出该磁盘，或换用更快的磁盘。",
        ),
    },
    "binds_host_io_proof": {
        "en": (
            "`iostat -x 1` beside the run, with the disk near 100 % busy, would confirm it.",
            "I/O wait and TTFT p99 at the same level must both fall.",
        ),
        "zh": (
            "运行时若 `iostat -x 1` 显示磁盘接近 100 % 繁忙，即可确认。",
            "同一级别下 I/O 等待与 TTFT p99 应同时下降。",
        ),
    },
    "binds_host_swap": {
        "en": (
            "{arm}: the host swaps {rate:.1f} MiB/s under load: its memory is too small.",
            "Add memory, or lower what is pinned or kept in it (swap space, CPU offload, workers).",
        ),
        "zh": (
            "{arm}：负载期间主机以 {rate:.1f} MiB/s 进行内存交换：主机内存不足。",
            "增加内存，或减少占用（swap space、CPU offload、工作进程数）。",
        ),
    },
    "binds_host_swap_proof": {
        "en": (
            "The processes' resident size against the host's memory (`ps`, `free`) confirms it.",
            "`vmstat 1` beside the run: si and so must stay at zero.",
        ),
        "zh": (
            "将各进程常驻内存与主机内存对比（`ps`、`free`）即可确认。",
            "运行时 `vmstat 1` 的 si 与 so 应保持为零。",
        ),
    },
    "binds_host_network": {
        "en": (
            "{arm}: a link of the host is {used:.0%} full ({rate:.0f} MB/s) under load.",
            "Use a faster link, or keep the other traffic (weights, storage, logs) off it.",
        ),
        "zh": (
            "{arm}：负载期间主机一条网络链路占用 {used:.0%}（{rate:.0f} MB/s）。",
            "换用更快的链路，或让其他流量（权重、存储、日志）改走别的链路。",
        ),
    },
    "binds_host_network_proof": {
        "en": (
            "The same load from the server's own host would confirm it.",
            "TTFT p99 and the link's use at the same level must both fall.",
        ),
        "zh": (
            "在服务器本机发起同样的负载可以确认。",
            "同一级别下 TTFT p99 与链路占用应同时下降。",
        ),
    },
}
