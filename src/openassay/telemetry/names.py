"""Names of span attributes: OpenTelemetry's where it has one, else our own.

Those of generative AI still change now and then; tests/unit/test_telemetry.py compares them with what is installed.
"""

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
DATA_SOURCE = "gen_ai.data_source.id"
QUERY = "gen_ai.retrieval.query.text"
INSTRUCTIONS = "gen_ai.system_instructions"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"

INVOKE_AGENT, CHAT, RETRIEVAL = "invoke_agent", "chat", "retrieval"  # operations
PROVIDERS = {"google": "gcp.gemini"}  # whom others call differently

ERROR = "error.type"
EXCEPTION_MESSAGE = "exception.message"
METHOD = "http.request.method"
ROUTE = "http.route"
STATUS_CODE = "http.response.status_code"
ADDRESS = "url.full"

SERVICE = "service.name"
SERVICE_VERSION = "service.version"
SERVICE_INSTANCE = "service.instance.id"

RUN = "openassay.run"
RUN_STATUS = "openassay.run.status"
FALLS = "openassay.run.falls"  # how many in a row died or were lost while at it
REQUEST = "openassay.request"
STAGE = "openassay.stage"
STEP = "openassay.step"
TASK = "openassay.task"
BY = "openassay.by"
UNFINISHED = "openassay.unfinished"  # a stage that was cut off, or asks a person
USD = "openassay.usd"
CONFIRMED = "openassay.confirmed"  # false: booked at its worst case
CACHED = "openassay.cached"
HITS = "openassay.hits"
WORDS = "openassay.words"
PUBLISHER = "openassay.publisher"  # what sort of site
QUESTION_KIND = "openassay.question.kind"
TITLE = "openassay.title"
TEXT = "openassay.text"
