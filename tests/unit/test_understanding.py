"""What a message means by itself, in a thread, and with the answers to what was asked back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.companies.register import CompanyRegister
from openassay.models.plan import ThreadMessage, Understanding
from openassay.protocols import CompanyResolver
from openassay.reasoning.base import Conversation
from openassay.reasoning.rules.followups import condense
from openassay.reasoning.rules.understand import classify_question, extract_topic, understand
from openassay.text.small_talk import choose_reply
from tests.fakes.reasoner import FakeCompanies

COMPANIES: CompanyResolver = FakeCompanies(
    {
        "apple": "Apple", "aapl": "Apple", "tesla": "Tesla", "tsla": "Tesla", "the electric car company": "Tesla",
        "microsoft": "Microsoft", "aple": "Apple", "delta": "Delta Air Lines|Delta Electronics|Delta Apparel",
        "delta air lines": "Delta Air Lines", "the company that makes the iphone": "Apple",
    }
)  # fmt: skip


def said(message: str, *before: str, subject: str | None = None, clarified: tuple[str, ...] = ()) -> Understanding:
    """A message after others of the person's; answers say nothing, unless given after " -> "."""
    turns: list[ThreadMessage] = []
    for text in before:
        asked, _, answer = text.partition(" -> ")
        turns += [
            ThreadMessage(role="user", content=asked),
            ThreadMessage(role="assistant", content=answer or "See the report."),
        ]
    return understand(message, Conversation(turns=tuple(turns), subject=subject, clarified=clarified), COMPANIES)


# Follow-ups


@pytest.mark.requirement("C-06", "C-11")
@pytest.mark.parametrize(
    ("before", "message", "question"),
    [
        (["What's happening with Apple?"], "What about their stock?", "What about Apple's stock?"),
        (["What's happening with Apple?"], "Who is the CEO?", "Who is the CEO of Apple?"),
        (["Who is the CEO of Apple?"], "How old is he?", "How old is the CEO of Apple?"),
        (["What's happening with Apple?"], "how many employees?", "how many employees of Apple?"),
        (["What's happening with Apple?"], "Where is the company based?", "Where is Apple based?"),
        (["What's happening with Apple?"], "tell me more", "Tell me more about Apple"),
        (["What's happening with Apple?"], "anything else?", "What else is there to know about Apple?"),
        (["What was Apple's revenue in 2022?"], "And in 2023?", "What was Apple's revenue in 2023?"),
        (["What was Apple's revenue?"], "What about Tesla?", "What was Tesla's revenue?"),
        (["What was Apple's revenue?", "What about Tesla?"], "And in 2023?", "What was Tesla's revenue in 2023?"),
        (["Did Apple's sales fall?"], "Why?", "Why did Apple's sales fall?"),
        (["How did Apple's sales change?"], "why?", "Why did Apple's sales change?"),
        (["Tell me about Tesla"], "Compare them to Apple", "Compare Tesla to Apple"),
        (["Tell me about Tesla", "Now tell me about Apple"], "compare them", "Compare Tesla and Apple"),
        (["Compare Apple and Tesla"], "Which of the two is bigger?", "Which is bigger, Apple or Tesla?"),
        (["Compare Apple and Tesla"], "What are their revenues?", "What are Apple and Tesla's revenues?"),
        (["Compare Apple and Tesla"], "How old is the latter?", "How old is Tesla?"),
        (["What is groundwater?"], "How is it cleaned?", "How is groundwater cleaned?"),
        (["What are perovskite cells?"], "Are they stable?", "Are perovskite cells stable?"),
        (["What causes acid rain?"], "In Europe?", "What causes acid rain in Europe?"),
        (["Tell me about Ada Lovelace"], "When did she die?", "When did Ada Lovelace die?"),
        (["When was Ada Lovelace born?"], "Was Lovelace married?", "Was Ada Lovelace married?"),
        (
            ["Tell me about Michael Jackson -> He released his sixth album, Thriller, in 1982."],
            "Was the album a success?",
            "Was the sixth album a success (Michael Jackson)?",
        ),
        (
            ["What did Michael Jackson release? -> Thriller", "When did he do that?"],
            "Who produced it?",
            "Who produced Thriller (Michael Jackson)?",
        ),
        (["Tell me about Tesla"], "is it better than Apple?", "is Tesla better than Apple?"),
        (["Compare Apple, Tesla and Microsoft"], "which of them has the highest market cap?",
         "which has the highest market cap, Apple, Tesla or Microsoft?"),
        (["Compare Apple, Tesla and Microsoft", "which of them has the highest market cap?"], "and the lowest?",
         "which has the lowest market cap, Apple, Tesla or Microsoft?"),
        (["Which is the most valuable company?"], "and the least?", "Which is the least valuable company?"),
        (["How is Apple doing?", "How is Tesla doing?", "How is Microsoft doing?"], "what about the others?",
         "How are Apple and Tesla doing?"),
        (["Compare Apple, Tesla and Microsoft", "Which one is the biggest? -> Apple is."], "what about the others?",
         "Tell me about Tesla and Microsoft"),
        (["Compare Apple and Tesla"], "What about Microsoft?", "Compare Apple, Tesla and Microsoft"),
        (["What is the stock price of TSLA?"], "what about AAPL?", "What is the stock price of Apple?"),
        (["What did he sign? -> The Taxpayer Protection Pledge"], "When was the pledge made?",
         "When was the Taxpayer Protection pledge made?"),
    ],
)  # fmt: skip
def test_a_follow_up_is_made_to_stand_alone(before: list[str], message: str, question: str) -> None:
    assert said(message, *before).question == question


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    ("before", "question"),
    [
        (["Did Apple's sales fall?", "tell me more"], "Why did Apple's sales fall?"),
        (["What is acid rain?", "tell me more"], "What explains acid rain?"),
        (["How is Apple doing?"], "Why is Apple doing so?"),
        (["Compare Apple and Tesla", "tell me more"], "Why do Apple and Tesla differ?"),
        (["What's happening with Apple?", "in one sentence"], "What explains what is happening with Apple?"),
        (["Who founded Apple?", "when?"], "Why? (Who founded Apple)"),
    ],
)
def test_why_asks_for_the_reason_of_the_last_real_question(before: list[str], question: str) -> None:
    understood = said("why?", *before)
    assert (understood.question, understood.topic_focus != "Why") == (question, True)


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    "message",
    ["shorter please", "in one sentence", "summarise that", "in German please", "as a table", "again please", "Longer!",
     "can you translate that to French?", "explain it like I'm five", "a bit simpler", "rewrite it as bullet points"],
)  # fmt: skip
def test_another_form_of_the_answer_is_the_last_question_again(message: str) -> None:
    assert said(message, "What was Apple's revenue in 2022?").question == "What was Apple's revenue in 2022?"
    assert said("And in 2023?", "What was Apple's revenue in 2022?", message).question == (
        "What was Apple's revenue in 2023?"
    )
    assert said(message).needs_clarification


@pytest.mark.requirement("C-11")
def test_a_length_is_kept_with_the_question_and_away_from_its_topic() -> None:
    understood = said("in 100 words please", "What was Apple's revenue?")
    assert (understood.question, understood.topic_focus) == (
        "What was Apple's revenue, in 100 words?",
        "Apple's revenue",
    )


@pytest.mark.parametrize(
    "message",
    ["What is shorter, a mile or a kilometre?", "How do I make a table?", "Who speaks German?", "What was it again?"],
)
def test_what_only_speaks_of_form_is_a_question(message: str) -> None:
    assert said(message, "How deep is Lake Orta?").question != "How deep is Lake Orta?"


NAMES = (
    "Cepheids seen by the Hubble Space Telescope give 73.0, says Adam Riess. The Planck Collaboration finds 67.4. "
    "Wendy Freedman of the Carnegie Observatories finds 69.8."
)


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    ("before", "message", "question"),
    [
        (["How did the Hubble tension arise?"], "when will it be settled?", "when will the Hubble tension be settled?"),
        (["What is the Hubble constant?"], "who measured it first?", "who measured the Hubble constant first?"),
        (["What is the Hubble constant?"], "How do they measure it?", "How do they measure the Hubble constant?"),
        (["What is the Hubble tension?", "Who is Adam Riess?", "What does he say?"], "when will it be settled?",
         "when will Hubble tension be settled?"),
        (["What is the Hubble tension?"], "what about masers?", "what about masers (Hubble tension)?"),
        (["What is the Hubble tension?", "what about masers?"], "tell me more",
         "Tell me more about masers (Hubble tension)"),
        (["What is the Hubble tension?", "what about masers?"], "are they precise?", "are masers precise?"),
    ],
)  # fmt: skip
def test_names_of_an_answer_are_not_what_the_thread_is_about(before: list[str], message: str, question: str) -> None:
    talk, subject = [f"{text} -> {NAMES}" for text in before], None
    for place, text in enumerate(before):
        subject = said(text, *talk[:place], subject=subject).primary_subject
    assert said(message, *talk, subject=subject).question == question


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("their CEO?", "Who is Apple's CEO?"),
        ("and the founders?", "Who are Apple's founders?"),
        ("headquarters?", "Where is Apple's headquarters?"),
        ("its stock price?", "What is Apple's stock price?"),
        ("what about their revenue?", "What is Apple's revenue?"),
        ("their competitors?", "Who are Apple's competitors?"),
    ],
)
def test_what_somebody_has_is_asked_for_in_full(message: str, question: str) -> None:
    assert said(message, "What's happening with Apple?").question == question


@pytest.mark.requirement("C-11")
def test_what_somebody_has_is_asked_for_of_the_same_time_and_of_all() -> None:
    assert said("and revenue?", "What was Apple's profit in 2022?").question == "What was Apple's revenue in 2022?"
    assert said("their market caps?", "Compare Apple and Tesla").question == "What are Apple and Tesla's market caps?"
    assert said("how old is he?", "Tell me about Apple", "their CEO?").question == "how old is Apple's CEO?"


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize("before", [[], ["How is Apple doing?"]])
def test_others_that_nobody_has_named_are_asked_about(before: list[str]) -> None:
    understood = said("what about the others?", *before)
    assert understood.clarification_question == "Which others do you mean?"


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("How did the Hubble tension arise?", "Hubble tension"),
        ("How is Apple doing?", "Apple"),
        ("What about Apple doing", "Apple"),
        ("How is Tesla performing this year?", "Tesla"),
        ("How did life come about?", "life"),
        ("When will the dispute be settled?", "dispute"),
        ("How is remote work?", "remote work"),
        ("What is climate change?", "climate change"),
        ("Compare Apple, Tesla and Microsoft", "Apple, Tesla and Microsoft"),
        ("What explains the price of wheat?", "wheat"),
    ],
)
def test_a_topic_is_what_a_question_is_about_without_its_verb(question: str, topic: str) -> None:
    assert extract_topic(question) == topic


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    "message",
    [
        "Now tell me about Tesla",
        "What causes wildfires?",
        "How do vaccines work?",
        "How long does it take to fly to Mars?",
        "Is it true that Tesla builds rockets?",
        "Who was Marie Curie and what did she discover?",
        "How do I cancel a subscription?",
    ],
)
def test_nothing_is_carried_over_into_what_stands_alone(message: str) -> None:
    understood = said(message, "What's happening with Apple?", subject="Apple")
    assert (understood.question, understood.intent) == (message, "research")
    assert "Apple" not in understood.subjects


@pytest.mark.requirement("C-11")
def test_a_conversation_keeps_its_subjects_apart() -> None:
    talk = ["What's happening with Apple?", "What about their stock?", "Now tell me about Tesla"]
    compared = said("Compare them to Apple", *talk, subject="Tesla")
    assert (compared.intent, compared.subjects, compared.primary_subject) == ("compare", ("Tesla", "Apple"), "Tesla")
    again = said("tell me more", *talk, "Compare them to Apple", "thanks!", subject="Tesla")
    assert (again.intent, again.subjects) == ("more", ("Tesla", "Apple"))
    assert again.query_class == "comparison"


@pytest.mark.requirement("C-11")
def test_what_was_condensed_is_still_known() -> None:
    turns = [
        ThreadMessage(role="user", content="What did Apple earn in 2022?"),
        ThreadMessage(role="assistant", content="A lot."),
    ]
    conversation = Conversation(summary=condense(turns, ""))
    assert understand("And in 2023?", conversation, COMPANIES).question == "What did Apple earn in 2023?"


# Companies and other subjects


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize(
    ("message", "question", "subjects"),
    [
        ("Tell me about Aple", "Tell me about Apple", ("Apple",)),
        ("How is TSLA doing?", "How is TSLA doing?", ("Tesla",)),
        ("Tell me about the electric car company", "Tell me about Tesla", ("Tesla",)),
        ("aapl", "What is happening with Apple?", ("Apple",)),
        ("Compare Apple, Tesla and Microsoft", "Compare Apple, Tesla and Microsoft", ("Apple", "Tesla", "Microsoft")),
        ("compare apple and tesla", "compare apple and tesla", ("Apple", "Tesla")),
        ("Did Ada Lovelace know Apple?", "Did Ada Lovelace know Apple?", ("Ada Lovelace", "Apple")),
        ("What is Acme Corp's revenue?", "What is Acme Corp's revenue?", ("Acme Corp",)),
    ],
)
def test_subjects_are_companies_by_their_names_and_other_names_as_written(
    message: str, question: str, subjects: tuple[str, ...]
) -> None:
    understood = said(message)
    assert (understood.question, understood.subjects) == (question, subjects)
    assert not understood.needs_clarification


@pytest.mark.requirement("C-06")
def test_a_name_of_several_companies_is_asked_about_with_a_choice() -> None:
    asked = said("What's happening with Delta?")
    assert asked.needs_clarification
    assert asked.clarification_options == ("Delta Air Lines", "Delta Electronics", "Delta Apparel")
    for answer in ("Delta Air Lines", "the first one", "1", "the air lines"):
        understood = said("What's happening with Delta?", clarified=(answer,))
        assert understood.question == "What's happening with Delta Air Lines?", answer
        assert understood.subjects == ("Delta Air Lines",)


@pytest.mark.requirement("C-05", "C-06")
def test_what_fits_none_of_the_choices_is_asked_about_again_with_them() -> None:
    asked = "What's happening with Delta?"
    again = said(asked, clarified=("the insurer",))
    assert again.clarification_options == ("Delta Air Lines", "Delta Electronics", "Delta Apparel")
    assert "none of them" in str(again.clarification_question)
    assert said(asked, clarified=("the insurer", "Delta Apparel")).question == "What's happening with Delta Apparel?"


@pytest.mark.requirement("C-05", "C-06")
@pytest.mark.parametrize(
    ("answers", "question"),
    [
        (("the river", "the river"), "What's happening with Delta (the river)?"),
        (("the river Delta",), "What's happening with the river Delta?"),
        (("What is a river delta?",), "What is a river delta?"),
    ],
)
def test_who_means_no_company_is_taken_at_their_word(answers: tuple[str, ...], question: str) -> None:
    understood = said("What's happening with Delta?", clarified=answers)
    assert (understood.question, understood.needs_clarification) == (question, False)


@pytest.mark.requirement("C-06")
def test_a_choice_is_known_by_what_it_is_registered_as() -> None:
    register = CompanyRegister.from_rows(
        [(1, "Mercury Systems Inc", ["MRCY"]), (2, "Mercury Insurance Group", ["MCY"])]
    )
    for answer in ("the insurer", "insurance"):
        understood = understand("How is Mercury doing?", Conversation(clarified=(answer,)), register)
        assert (understood.question, understood.needs_clarification) == ("How is Mercury Insurance Group doing?", False)


@pytest.mark.requirement("C-06")
def test_where_it_may_be_one_of_several_the_thread_offers_them() -> None:
    asked = said("hm, that thing", "Tell me about Tesla", "Tell me about Microsoft")
    assert asked.clarification_options == ("Microsoft", "Tesla")


# Answers to what was asked back


@pytest.mark.requirement("C-05", "C-06")
@pytest.mark.parametrize(
    ("message", "answers", "question"),
    [
        ("Tell me about the company", ("Apple",), "Tell me about Apple"),
        ("Tell me about the company", ("I mean apple",), "Tell me about Apple"),
        ("Tell me about the company", ("the one that makes the iPhone",), "Tell me about Apple"),
        ("Tell me about the company", ("The tech one", "Apple"), "Tell me about Apple"),
        ("What about their stock?", ("Tesla",), "What about Tesla's stock?"),
        ("Tell me about the company", ("Actually, what's happening with Tesla?",), "what's happening with Tesla?"),
        ("Fusion", ("how far is it from working?",), "how far is Fusion from working?"),
        ("", ("How deep is Lake Orta?",), "How deep is Lake Orta?"),
        ("asdf qwer", ("How deep is Lake Orta?",), "How deep is Lake Orta?"),
    ],
)
def test_an_answer_is_understood_afresh(message: str, answers: tuple[str, ...], question: str) -> None:
    understood = said(message, clarified=answers)
    assert (understood.question, understood.needs_clarification) == (question, False)


SHRUGS = ["I do not know", "no idea", "whatever", "you choose", "either", "Not sure, sorry", "up to you", "dunno"]


@pytest.mark.requirement("C-05", "C-06")
@pytest.mark.parametrize("answer", [*SHRUGS, "it doesn't matter"])
def test_an_answer_that_says_nothing_is_left_out(answer: str) -> None:
    for asked in ("Tell me about the company", "How is Delta doing?"):
        first, second = said(asked), said(asked, clarified=(answer,))
        assert second.needs_clarification
        assert (second.question, second.topic_focus) == (first.question, first.topic_focus)
        assert second.clarification_options == first.clarification_options
    assert said("Tell me about the company", clarified=(answer, "Apple")).question == "Tell me about Apple"


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize("message", SHRUGS)
def test_a_message_that_says_nothing_is_asked_about(message: str) -> None:
    for before in ([], ["How is Apple doing?"]):
        understood = said(message, *before)
        assert (understood.intent, understood.topic_focus) == ("unclear", "")
        assert "What would you like" in str(understood.clarification_question)


@pytest.mark.requirement("C-05", "C-06")
@pytest.mark.parametrize("answer", ["The tech one", "the company", "that one", "hello", "hm", "?", ""])
def test_an_answer_that_is_still_vague_is_asked_about_again(answer: str) -> None:
    first, second = said("Tell me about the company"), said("Tell me about the company", clarified=(answer,))
    assert second.needs_clarification
    assert second.clarification_question != first.clarification_question


# What asks for no research


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize(
    "message",
    ["Nevermind", "never mind!", "forget it", "Let's drop this", "cancel the search please", "stop", "no thanks",
     "Please stop the research.", "I changed my mind", "actually, forget about it", "it doesn't matter anymore",
     "can you cancel that?"],
)  # fmt: skip
def test_calling_it_off_in_many_words(message: str) -> None:
    assert said(message).intent == "cancel"
    assert said("Tell me about the company", clarified=(message,)).intent == "cancel"


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize(
    "message",
    ["How do I cancel a subscription?", "Why did Apple stop the car project?", "Who wrote Never Mind the Bollocks?",
     "What is a stop codon?", "Did Tesla cancel the order?", "How does thanking people change them?"],
)  # fmt: skip
def test_what_only_speaks_of_stopping_or_thanks_is_a_question(message: str) -> None:
    assert said(message).intent == "research"


@pytest.mark.parametrize(
    "message",
    ["hi", "Hello there!", "thanks a lot", "thank you for the report", "who are you?", "What can you do?", "ok, great!",
     "good morning", "hi, how are you?", "bye"],
)  # fmt: skip
def test_small_talk(message: str) -> None:
    assert said(message).intent == "small_talk"


@pytest.mark.parametrize(
    ("message", "fitting"),
    [
        ("thanks", "welcome"), ("thank you for the help", "welcome"), ("help", "every sentence"), ("bye", "Goodbye"),
        ("what can you do?", "for example"), ("who are you?", "for example"), ("hello", "Hello"), ("ok", "All right"),
        ("no", "All right"), ("good morning", "Hello"), ("great!", "Glad"), ("hi, what can you do?", "for example"),
    ],
)  # fmt: skip
def test_small_talk_is_answered_in_kind(message: str, fitting: str) -> None:
    assert said(message, "How is Apple doing?").intent == "small_talk"
    assert fitting in choose_reply(message)


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize("message", ["asdf qwer zxcv", "?????", "blah blah", "🎉🎉🎉", "aaaaaaa", "hjkl"])
def test_what_nobody_can_read_is_asked_for_in_words(message: str) -> None:
    understood = said(message)
    assert understood.clarification_question is not None
    assert "What would you like to know" in understood.clarification_question


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize(
    "message", ["it", "What about their stock?", "Tell me more", "Compare them to Apple", "the company", "And in 2023?"]
)
def test_what_leans_on_nothing_is_asked_back(message: str) -> None:
    assert said(message).needs_clarification


# How open a message is, and what could be asked instead


@pytest.mark.requirement("W-03")
@pytest.mark.parametrize(
    ("message", "least", "most"),
    [
        ("AI", 0.55, 0.7),
        ("climate change", 0.55, 0.7),
        ("Tell me about climate change", 0.55, 0.7),
        ("Tell me about Apple", 0, 0.3),
        ("What is photosynthesis?", 0, 0.3),
        ("How did the price of wheat in Europe change in 2023?", 0, 0.3),
        ("What about their stock?", 0.8, 1),
        ("", 1, 1),
    ],
)
def test_how_much_is_left_open(message: str, least: float, most: float) -> None:
    assert least <= said(message).ambiguity_level <= most


@pytest.mark.parametrize(
    ("message", "word"),
    [("climate change", "climate change"), ("AI", "AI"), ("Tell me about Tesla", "Tesla"),
     ("What about their stock?", "stock"), ("Tell me about the company", "Tell me about")],
)  # fmt: skip
def test_suggestions_are_made_for_the_message(message: str, word: str) -> None:
    suggested = said(message).suggested_questions
    assert 2 <= len(suggested) <= 3
    assert all(word in text for text in suggested)
    assert message not in suggested


# Whatever is written

TEXT = st.text(max_size=300)
WORDS = st.sampled_from(
    "what about it the company and in 2023 why Apple tsla Delta compare them he their album that this \\1 (x) ? ! Ada "
    "Lovelace stop never mind is was there former latter other one more tell me “ ” ' asdf".split()
)
MESSAGES = TEXT | st.lists(WORDS, max_size=25).map(" ".join)
THREADS = st.lists(st.tuples(st.sampled_from(("user", "assistant")), MESSAGES), max_size=6).map(
    lambda turns: tuple(ThreadMessage.model_validate({"role": role, "content": text}) for role, text in turns)
)
SUBJECTS = st.sampled_from(("Tesla", "Microsoft", "Lake Orta", "Ada Lovelace", "Acme Corp"))
FORMS = st.sampled_from(
    ("How large is {}?", "What is {} known for?", "When was {} first mentioned in print?", "Tell me about {}",
     "Why does {} matter for the economy of Europe?", "Did {} win any awards?")
)  # fmt: skip


@given(MESSAGES, THREADS, MESSAGES, st.none() | MESSAGES, st.lists(MESSAGES, max_size=2).map(tuple))
def test_no_text_is_too_strange(
    message: str, turns: tuple[ThreadMessage, ...], summary: str, subject: str | None, clarified: tuple[str, ...]
) -> None:
    conversation = Conversation(turns=turns, summary=summary, subject=subject, clarified=clarified)
    understood = understand(message, conversation, COMPANIES)
    assert understood == understand(message, conversation, COMPANIES)
    assert understood.needs_clarification or understood.question or understood.intent == "cancel"
    assert len(understood.clarification_options) <= 4


@given(FORMS, SUBJECTS, THREADS)
def test_who_names_the_subject_is_taken_at_their_word(
    form: str, subject: str, turns: tuple[ThreadMessage, ...]
) -> None:
    message = form.format(subject)
    before = tuple(turn for turn in turns if "Ada" not in turn.content and "Lovelace" not in turn.content)
    assert understand(message, Conversation(turns=before, subject="Apple"), COMPANIES).question == message


@given(FORMS, SUBJECTS, MESSAGES)
def test_what_stands_alone_stays_so(form: str, subject: str, message: str) -> None:
    first = said(message, form.format(subject))
    if not first.needs_clarification and first.intent in ("research", "follow_up", "compare", "more"):
        again = understand(first.question, Conversation(), COMPANIES)
        if first.subjects and not again.needs_clarification:
            assert again.question == first.question


@given(st.lists(st.sampled_from(("What about their stock?", "Tell me more", "Who is the CEO?", "Why?")), max_size=4))
def test_threads_that_say_the_same_never_mix(messages: list[str]) -> None:
    for subject, other in (("Apple", "Tesla"), ("Tesla", "Apple")):
        understood = said("What about their plans?", f"What's happening with {subject}?", *messages, subject=subject)
        assert understood.subjects == (subject,)
        assert other not in understood.question


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize("lead", ["Now ", "OK, now ", "And now please ", "Well, "])
def test_what_is_said_before_asking_changes_nothing(lead: str) -> None:
    asked = f"{lead}tell me about Tesla"

    assert classify_question(asked) == classify_question("Tell me about Tesla") == "overview"
    assert extract_topic(asked) == "Tesla"
