"""The report as people hold it: the data, and how it looks."""

from openassay.export.html import render_fragment as render_html
from openassay.export.markdown import render_markdown
from openassay.models.report import ReportData


class Report(ReportData):
    """What `research()` returns. In a notebook it shows itself."""

    @property
    def markdown(self) -> str:
        return render_markdown(self)

    @property
    def html(self) -> str:
        return render_html(self)

    def _repr_html_(self) -> str:
        return self.html

    def _repr_markdown_(self) -> str:
        return self.markdown
