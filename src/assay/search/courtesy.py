"""What a key or a contact is worth to those who give one."""

from assay.model.inquiry import Terms
from assay.settings import Searching


def raised(terms: Terms, name: str, settings: Searching, **better: float) -> Terms:
    """Better terms, save what the settings have decided."""
    decided = {
        *(["per_minute"] if name in settings.requests_per_minute else ()),
        *(["per_day"] if name in settings.requests_per_day else ()),
    }
    return terms.model_copy(update={field: value for field, value in better.items() if field not in decided})


def introduced(user_agent: str, contact: str | None) -> str:
    """A User-Agent that says whom to write to."""
    return f"{user_agent} ({contact})" if contact and contact.isascii() else user_agent
