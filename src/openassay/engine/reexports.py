"""What front ends may use of the layers below the engine. They import it from here, and nothing below."""

from openassay.fetch.client import FetchClient
from openassay.fetch.documents import SUFFIXES, identify_upload
from openassay.fetch.guard import AddressGuard
from openassay.graph import STATUS as NODE_STATUS
from openassay.graph import build_graph
from openassay.nodes.approve import REVIEWER_PREFIX
from openassay.nodes.preferences import language_code
from openassay.nodes.report import CONSIDERATION_PREFIX
from openassay.search.ranking import fuse
from openassay.search.registry import OFFLINE, parse_host_or_source
from openassay.storage.admin import database_address
from openassay.storage.artifacts import MAX_NAMES, ArtifactDraft, no_artifact
from openassay.storage.connections import Outage
from openassay.storage.database import EVENTS, Connection, Database, run_in_thread, utc_now
from openassay.storage.postgres import ATTEMPT_SECONDS, KEEPALIVE, PostgresDatabase, connect_options
from openassay.storage.rate_limits import ProcessRates
from openassay.storage.threads import no_run, no_thread
from openassay.storage.uploads import UploadCursor, UploadQuota, upload_uri
from openassay.storage.users import SHARE_PREFIX, TOKEN_PREFIX, SqlUsers
from openassay.storage.webhooks import MAX_TESTS
from openassay.storage.webhooks import PREFIX as WEBHOOK_SECRET_PREFIX

__all__ = [
    "ATTEMPT_SECONDS",
    "CONSIDERATION_PREFIX",
    "EVENTS",
    "KEEPALIVE",
    "MAX_NAMES",
    "MAX_TESTS",
    "NODE_STATUS",
    "OFFLINE",
    "REVIEWER_PREFIX",
    "SHARE_PREFIX",
    "SUFFIXES",
    "TOKEN_PREFIX",
    "WEBHOOK_SECRET_PREFIX",
    "AddressGuard",
    "ArtifactDraft",
    "Connection",
    "Database",
    "FetchClient",
    "Outage",
    "PostgresDatabase",
    "ProcessRates",
    "SqlUsers",
    "UploadCursor",
    "UploadQuota",
    "build_graph",
    "connect_options",
    "database_address",
    "fuse",
    "identify_upload",
    "language_code",
    "no_artifact",
    "no_run",
    "no_thread",
    "parse_host_or_source",
    "run_in_thread",
    "upload_uri",
    "utc_now",
]
