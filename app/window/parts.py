"""All widgets that show something, as one value."""

from dataclasses import dataclass

from app.charts.card import ChartCard
from app.charts.itl_histogram_chart import ItlHistogramChart
from app.charts.itl_over_time_chart import ItlOverTimeChart
from app.charts.throughput_chart import ThroughputChart
from app.charts.ttft_chart import TtftChart
from app.panels.checkpoints import find_checkpoints, first_choice
from app.panels.engine_panel import EnginePanel
from app.panels.kv_panel import KvPanel
from app.panels.load_panel import LoadPanel
from app.panels.log_panel import LogPanel
from app.panels.numbers_panel import NumbersPanel
from app.panels.stream_panel import StreamPanel
from app.places import Places
from app.window.header import Header
from app.window.status_line import StatusLine


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The window assembles them, the presenter fills them, the controller listens to them."""

    header: Header
    status: StatusLine
    engine: EnginePanel
    load: LoadPanel
    numbers: NumbersPanel
    streams: StreamPanel
    kv: KvPanel
    log: LogPanel
    throughput: ThroughputChart
    ttft: TtftChart
    itl_over_time: ItlOverTimeChart
    itl_histogram: ItlHistogramChart

    @property
    def charts(self) -> tuple[ChartCard, ...]:
        """The four charts in reading order."""
        return self.throughput, self.ttft, self.itl_over_time, self.itl_histogram


def make_parts(places: Places) -> Parts:
    """Return new widgets."""
    found = find_checkpoints(places.checkpoints)
    model = first_choice(found, places.default_model)
    parts = Parts(
        header=Header(),
        status=StatusLine(),
        engine=EnginePanel(found, model),
        load=LoadPanel(),
        numbers=NumbersPanel(),
        streams=StreamPanel(),
        kv=KvPanel(),
        log=LogPanel(),
        throughput=ThroughputChart(),
        ttft=TtftChart(),
        itl_over_time=ItlOverTimeChart(),
        itl_histogram=ItlHistogramChart(),
    )
    parts.kv.set_model(str(model))
    return parts
