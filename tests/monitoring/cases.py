"""For every alert: series that make it fire, and series that come close."""

from __future__ import annotations

from dataclasses import dataclass, field

Series = dict[str, str]
"""Selectors with one value a step, in promtool's notation: `5x60` is sixty-one times 5, `0+2x60` counts by two."""


@dataclass(frozen=True)
class Case:
    """Series that make an alert fire, series that don't, and the step (from the first value) of the check."""

    fires: Series
    silent: Series
    at: int = 60
    also: Series = field(default_factory=dict)
    """Given to both."""
    fetch_type: str = "queue-fetcher"
    """Of the installation."""
    minutes: int = 1
    """Of a step."""


PROCESS = 'job="fetcher",instance="fetcher-1"'
SCHEDULER, FETCHER, WRITER, API = (
    f'feedmill_build_info{{component="{name}",version="1",job="{name}",instance="{name}-1"}}'
    for name in ("scheduler", "fetcher", "writer", "api")
)


def installation(case: Case) -> Series:
    """Return the series that say how the installation of a case fetches, and that it has three nodes of each server."""
    counted = {f"feedmill:{servers}": f"3x{case.at}" for servers in ("broker_nodes", "database_instances")}
    return {f'feedmill:installation{{fetch_type="{case.fetch_type}"}}': f"1x{case.at}", **counted}


def within(namespace: str, series: Series) -> Series:
    """Return the series with the label of a namespace."""
    label = f'namespace="{namespace}"'
    return {
        name.replace("{", "{" + label + ",", 1) if "{" in name else f"{name}{{{label}}}": values
        for name, values in series.items()
    }


def ready(queue: str) -> str:
    return f'rabbitmq_detailed_queue_messages_ready{{queue="{queue}"}}'


def consumers(queue: str) -> str:
    return f'rabbitmq_detailed_queue_consumers{{queue="{queue}"}}'


def outcome(name: str) -> str:
    return f'feedmill_fetches_total{{outcome="{name}"}}'


def bucket(metric: str, limit: str) -> str:
    return f'{metric}_bucket{{le="{limit}"}}'


def node(number: int, job: str = "rabbitmq") -> str:
    return f'rabbitmq_identity_info{{rabbitmq_cluster="c",rabbitmq_node="n{number}",job="{job}",instance="n{number}"}}'


def member(queue: str, number: int) -> str:
    quorum = 'queue_type="rabbit_quorum_queue",membership="follower"'
    return f'rabbitmq_detailed_queue_info{{queue="{queue}",{quorum},instance="n{number}"}}'


def alarm(name: str) -> str:
    return f'feedmill_alarm{{alarm="{name}"}}'


def answers(status: int) -> str:
    return f'feedmill_api_requests_total{{operation="list_feeds",status="{status}"}}'


def api_bucket(operation: str, limit: str) -> str:
    return f'feedmill_api_request_seconds_bucket{{operation="{operation}",le="{limit}"}}'


def fewer(what: str, label: str, nothing: str) -> Case:
    """Return a case of labels: six hours with one article in ten without, then three with four, or with two."""
    found, without = (f'feedmill_enriched_{what}_total{{{label}="{name}"}}' for name in ("found", nothing))
    return Case(
        {found: "0+90x36 3300+60x18", without: "0+10x36 400+40x18"},
        {found: "0+90x36 3320+80x18", without: "0+10x36 380+20x18"},
        at=54,
        minutes=10,
    )


LATENESS, BATCH = "feedmill_claim_lateness_seconds", "feedmill_write_batch_seconds"

CRONJOB = 'cronjob="feedmill-batch"'
BACKUP = "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp"
ARCHIVED, FAILED = (f"cnpg_pg_stat_archiver_last_{name}_time" for name in ("archived", "failed"))
STANDBY, RECEIVES = "cnpg_pg_replication_in_recovery", "cnpg_pg_replication_is_wal_receiver_up"

CASES: dict[str, Case] = {
    "FeedmillSilent": Case({"feedmill_silence_seconds": "1860x9"}, {"feedmill_silence_seconds": "1800x9"}, at=5),
    "FeedmillFeedsOverdue": Case(
        {"feedmill_longest_due_seconds": "3700x60"}, {"feedmill_longest_due_seconds": "3700x50 0x10"}, at=58
    ),
    "FeedmillPollsLate": Case(
        {bucket(LATENESS, "300"): "0+9x60", bucket(LATENESS, "900"): "0+10x60", bucket(LATENESS, "+Inf"): "0+10x60"},
        {bucket(LATENESS, "300"): "0+99x60", bucket(LATENESS, "900"): "0+100x60", bucket(LATENESS, "+Inf"): "0+100x60"},
    ),
    "FeedmillClaimsExpire": Case(
        {"feedmill_claims_expired_total": "0+2x90", "feedmill_feeds_claimed_total": "0+100x90"},
        {"feedmill_claims_expired_total": "0+2x90", "feedmill_feeds_claimed_total": "0+1000x90"},
        at=90,
    ),
    "FeedmillAbsent": Case({"up": "0x60"}, {WRITER: "1x60"}),
    "FeedmillSchedulerDown": Case({FETCHER: "1x60"}, {SCHEDULER: "1x50 _x4 1x10"}, also={WRITER: "1x60"}),
    "FeedmillFetcherDown": Case(
        {ready("fetcher.07"): "3x60"}, {ready("fetcher"): "0x60", ready("writer"): "9x60"}, also={SCHEDULER: "1x60"}
    ),
    "FeedmillWriterDown": Case({SCHEDULER: "1x60"}, {WRITER: "1x60"}, also={FETCHER: "1x60"}),
    "FeedmillApiDown": Case({API: "1x40 stale"}, {API: "1x50 _x4 1x10"}, also={WRITER: "1x60"}),
    "FeedmillApiFails": Case(
        {answers(200): "0+50x60", answers(503): "0+5x60"}, {answers(200): "0+500x60", answers(500): "0+5x60"}
    ),
    "FeedmillApiSlow": Case(
        {
            api_bucket("list_feeds", "1"): "0+9x60",
            api_bucket("list_feeds", "5"): "0+10x60",
            api_bucket("list_feeds", "+Inf"): "0+10x60",
        },
        {
            api_bucket("list_feeds", "1"): "0+99x60",
            api_bucket("list_feeds", "5"): "0+100x60",
            api_bucket("list_feeds", "+Inf"): "0+100x60",
            api_bucket("claim_articles", "1"): "0x60",
            api_bucket("claim_articles", "+Inf"): "0+9x60",
        },
    ),
    "FeedmillBatchLate": Case(
        {f"kube_cronjob_created{{{CRONJOB}}}": "0x200"},
        {f"kube_cronjob_status_last_successful_time{{{CRONJOB}}}": "0x60 4000x140"},
        at=130,
        fetch_type="batch-fetcher",
    ),
    "FeedmillBatchUnseen": Case(
        {'kube_cronjob_created{cronjob="other"}': "0x60"},
        {f"kube_cronjob_created{{{CRONJOB}}}": "0x60"},
        fetch_type="batch-fetcher",
    ),
    "FeedmillProcessUnreachable": Case(
        {FETCHER: "1x40 stale", f"up{{{PROCESS}}}": "1x40 0x20"},
        {FETCHER: "1x40 stale", f"up{{{PROCESS}}}": "1x40 stale", 'up{job="other",instance="other"}': "0x60"},
    ),
    "FeedmillNotReady": Case(
        {f"feedmill_ready{{{PROCESS}}}": "0x60"},
        {f"feedmill_ready{{{PROCESS}}}": "0x8 1 0x8 1 0x8 1 0x8 1 0x8 1 0x8 1"},
        also={FETCHER: "1x60"},
    ),
    "FeedmillHousekeepingFails": Case(
        {'feedmill_background_failing_seconds{task="pruning"}': "0+60x60"},
        {'feedmill_background_failing_seconds{task="pruning"}': "0+60x25 0x35"},
    ),
    "FeedmillClockOff": Case(
        {"feedmill_clock_offset_seconds": "-3600x60"},
        {"feedmill_clock_offset_seconds": "0x20 3600x3 0x37", f"feedmill_clock_offset_seconds{{{PROCESS}}}": "-9x60"},
    ),
    "FeedmillRestarting": Case(
        {f"process_start_time_seconds{{{PROCESS}}}": "0x40 1x2 2x2 3x2 4x2 5x30"},
        {f"process_start_time_seconds{{{PROCESS}}}": "0x50 5x20", 'process_start_time_seconds{job="o"}': "0+1x60"},
        also={FETCHER: "1x60"},
    ),
    "FeedmillMemoryNearLimit": Case(
        {f"process_resident_memory_bytes{{{PROCESS}}}": "95x60", f"feedmill_memory_limit_bytes{{{PROCESS}}}": "100x60"},
        {f"process_resident_memory_bytes{{{PROCESS}}}": "95x60", f"feedmill_memory_limit_bytes{{{PROCESS}}}": "0x60"},
    ),
    "FeedmillDeadLetters": Case({ready("fetcher.dead"): "1x60"}, {ready("fetcher.retry.3600s"): "1x60"}),
    "FeedmillMessagesBuried": Case(
        {'feedmill_messages_total{queue="writer",result="buried"}': "0+2x60"},
        {'feedmill_messages_total{queue="writer",result="buried"}': "0+1x60"},
    ),
    "FeedmillHandlingFails": Case(
        {'feedmill_messages_total{queue="writer",result="retried"}': "0+2x60"},
        {'feedmill_messages_total{queue="writer",result="acknowledged"}': "0+200x60"},
    ),
    "FeedmillQueueNotConsumed": Case(
        {consumers("fetcher.03"): "0x60", ready("fetcher.03"): "5x60"},
        {consumers("writer"): "0x60", ready("writer"): "0x60", consumers("writer.dead"): "0x60"},
        also={ready("writer.dead"): "5x60"},
    ),
    "FeedmillWriterBacklog": Case({ready("writer"): "900+20x60"}, {ready("writer"): "4000-20x60"}),
    "FeedmillEnricherIdle": Case(
        {consumers("enricher"): "0x60", ready("enricher"): "5x60"},
        {consumers("enricher"): "0x60", ready("enricher"): "0x60"},
        also={consumers("writer"): "0x60"},
    ),
    "FeedmillEnricherBacklog": Case({ready("enricher"): "400+20x60"}, {ready("enricher"): "4000-20x60"}),
    "FeedmillBackpressure": Case({"feedmill_backpressure": "1x60"}, {"feedmill_backpressure": "0 0 1 " * 20}),
    "FeedmillFetcherBacklog": Case(
        {ready("fetcher.00"): "2100x60", ready("fetcher.01"): "2100x60"},
        {ready("fetcher.00"): "2100x60", ready("fetcher.fast-delay.20s"): "2100x60"},
    ),
    "FeedmillMostFetchesFail": Case(
        {outcome("soft_error"): "0+60x60", outcome("skipped"): "0+900x60"},
        {outcome("soft_error"): "0+45x60", outcome("skipped"): "0+900x60"},
        also={outcome("fetched"): "0+50x60"},
    ),
    "FeedmillThrottled": Case(
        {outcome("throttled"): "0+12x90"},
        {outcome("throttled"): "0+9x90"},
        at=90,
        also={outcome("fetched"): "0+100x90"},
    ),
    "FeedmillThreadsBusy": Case({"feedmill_jobs_ready": "100x60"}, {"feedmill_jobs_ready": "0 100 " * 30}),
    "FeedmillEnrichmentFails": Case(
        {'feedmill_enriched_results_total{result="late"}': "0+2x60"},
        {'feedmill_enrichment_failures_total{part="topics"}': "0+1x60"},
        also={
            'feedmill_enriched_results_total{result="enriched"}': "0+100x60",
            "feedmill_enriched_articles_total": "0+200x60",
        },
    ),
    "FeedmillEnricherPartMissing": Case(
        {'feedmill_enricher_part_missing{part="topics",instance="2"}': "1x60"},
        {'feedmill_enricher_part_missing{part="topics",instance="2"}': "1x40 stale"},
        also={'feedmill_enricher_part_missing{part="topics",instance="1"}': "0x60"},
    ),
    "FeedmillBatchesSlow": Case(
        {bucket(BATCH, "5.0"): "0+9x60", bucket(BATCH, "10.0"): "0+10x60", bucket(BATCH, "+Inf"): "0+10x60"},
        {bucket(BATCH, "5.0"): "0+99x60", bucket(BATCH, "10.0"): "0+100x60", bucket(BATCH, "+Inf"): "0+100x60"},
    ),
    "FeedmillConsumersBehind": Case(
        {"feedmill_longest_pending_seconds": "90060x60"}, {"feedmill_longest_pending_seconds": "86400x60"}
    ),
    "FeedmillDeadArticles": Case({"feedmill_dead_articles": "7x30 9x30"}, {"feedmill_dead_articles": "7x60"}),
    "FeedmillBrokerAlarm": Case(
        {"rabbitmq_alarms_free_disk_space_watermark": "1x60"},
        {"rabbitmq_alarms_free_disk_space_watermark": "0x60"},
        also={"rabbitmq_alarms_memory_used_watermark": "0x60", ready("writer"): "0x60"},
    ),
    "FeedmillBrokerDiskLow": Case(
        {"rabbitmq_disk_space_available_bytes": "3e9x60"},
        {"rabbitmq_disk_space_available_bytes": "5e9x60"},
        also={"rabbitmq_disk_space_available_limit_bytes": "2e9x60", ready("writer"): "0x60"},
    ),
    "FeedmillBrokerNodeMissing": Case(
        # Gone for three hours: it fires for as long as that lasts.
        {node(1): "1x240", node(2): "1x240", node(3): "1x40 stale"},
        {node(1): "1x240", node(2): "1x240", node(3): "1x240", node(2, "rabbitmq-queues"): "1x40 stale"},
        at=240,
        also={ready("writer"): "0x240"},
    ),
    "FeedmillQueueMembersMissing": Case(
        {member("writer", 3): "1x20 stale", node(3): "1x60"},
        # A node that is down is another alert.
        {member("writer", 3): "1x20 stale", node(3): "1x20 stale"},
        also={one: "1x60" for number in (1, 2) for one in (node(number), member("writer", number))},
    ),
    "FeedmillBrokerUnseen": Case({"rabbitmq_identity_info": "1x60"}, {ready("writer"): "0x60"}),
    "FeedmillDatabaseConnections": Case(
        {
            'cnpg_backends_total{pod="db-1",state="idle"}': "50x60",
            'cnpg_backends_total{pod="db-1",state="active"}': "35x60",
        },
        {
            'cnpg_backends_total{pod="db-1",state="idle"}': "50x60",
            'cnpg_backends_total{pod="db-2",state="idle"}': "50x60",
        },
        also={'cnpg_pg_settings_setting{pod="db-1",name="max_connections"}': "100x60", WRITER: "1x60"},
    ),
    "FeedmillDatabaseReplicaBehind": Case(
        {"cnpg_pg_replication_lag": "301x60"}, {"cnpg_pg_replication_lag": "300x60"}, also={WRITER: "1x60"}
    ),
    # One is gone for three hours, or is there and receives nothing for a moment.
    "FeedmillDatabaseStandbyMissing": Case(
        {f'{STANDBY}{{pod="3"}}': "1x40 stale", f'{RECEIVES}{{pod="3"}}': "1x40 stale"},
        {f'{STANDBY}{{pod="3"}}': "1x240", f'{RECEIVES}{{pod="3"}}': "1x230 0x5 1x10"},
        at=240,
        also={f'{one}{{pod="{pod}"}}': f"{pod - 1}x240" for one in (STANDBY, RECEIVES) for pod in (1, 2)},
    ),
    "FeedmillDatabaseTakesNothing": Case(
        {alarm("database_full"): "1x9"}, {alarm("database_read_only"): "1x2 0x7", alarm("database_away"): "1x9"}, at=5
    ),
    "FeedmillVolumeFull": Case(
        {'kubelet_volume_stats_available_bytes{persistentvolumeclaim="d"}': "9x60"},
        {'kubelet_volume_stats_available_bytes{persistentvolumeclaim="d"}': "11x60"},
        also={'kubelet_volume_stats_capacity_bytes{persistentvolumeclaim="d"}': "100x60"},
    ),
    # Set up at the beginning: none ever, or one after 36 hours.
    "FeedmillBackupOld": Case({BACKUP: "0x220"}, {BACKUP: "0x200 120000x20"}, at=220, minutes=10),
    "FeedmillWalArchivingFails": Case(
        {f'{FAILED}{{pod="1"}}': "0x5 900x60", f'{FAILED}{{pod="2"}}': "0x60"},
        # What was the primary before still says that it failed.
        {f'{FAILED}{{pod="1"}}': "0x60", f'{FAILED}{{pod="2"}}': "900x60"},
        also={
            f'{ARCHIVED}{{pod="1"}}': "600x60",
            f'{ARCHIVED}{{pod="2"}}': "600x60",
            f'{STANDBY}{{pod="1"}}': "0x60",
            f'{STANDBY}{{pod="2"}}': "1x60",
        },
    ),
    "FeedmillFewerLanguages": fewer("languages", "language", "und"),
    "FeedmillFewerTopics": fewer("topics", "topic", "none"),
}
