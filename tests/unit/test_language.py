"""The language of a question: told where it is plain, and an English one is never taken for another."""

import json
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.text.language import detect_language

TOLD = {
    "de": [
        "Wie wirkt sich Intervallfasten auf die Insulinresistenz bei Erwachsenen aus?",
        "Was ist Photosynthese?",
        "Welche Folgen hatte der Bau des Suezkanals für den Handel?",
        "Warum ist der Wohnungsbau in Deutschland seit 2022 eingebrochen?",
        "Wer schrieb „The Lord of the Rings“ und wann ist es erschienen?",
    ],
    "fr": [
        "Quelles sont les causes de la Révolution française ?",
        "Comment fonctionne la photosynthèse dans les plantes ?",
        "Qu'est-ce que l'intelligence artificielle et quels sont ses risques ?",
        "Pourquoi le prix de l'électricité est-il lié au prix du gaz ?",
    ],
    "es": [
        "¿Cuáles son las causas de la inflación en Argentina?",
        "¿Cómo funciona la fotosíntesis en las plantas?",
        "¿Qué es la inteligencia artificial y cómo afecta al empleo?",
        "¿Quién ganó el mundial de fútbol en 2010 y dónde se jugó?",
    ],
    "it": [
        "Quali sono le cause della caduta dell'Impero romano?",
        "Che cos'è la fotosintesi e perché è importante?",
        "Chi ha scritto il romanzo e quando è stato pubblicato?",
    ],
    "pt": [
        "Quais são as causas da inflação no Brasil?",
        "Como funciona a fotossíntese e onde ela ocorre nas plantas?",
        "O que é a inteligência artificial e quais são os seus riscos?",
    ],
    "nl": [
        "Wat zijn de gevolgen van de stikstofcrisis voor de landbouw?",
        "Hoe werkt een warmtepomp en wat kost het?",
        "Waarom is het water in de Noordzee zo koud?",
    ],
    "sv": [
        "Vad är orsakerna till inflationen i Sverige?",
        "Hur fungerar fotosyntesen och varför är den viktig?",
        "Vilka länder har kärnkraft och hur mycket el ger den?",
    ],
    "pl": [
        "Jakie są przyczyny inflacji w Polsce?",
        "Jak działa fotosynteza i dlaczego jest ważna?",
        "Kto był pierwszym królem Polski i kiedy się urodził?",
    ],
    "ru": ["Каковы причины инфляции в России?", "Как работает сборщик мусора в CPython?"],
    "uk": ["Які причини інфляції в Україні?", "Що таке штучний інтелект?"],
    "ja": ["日本の人口はなぜ減少しているのですか？", "PCRとは何ですか、どのように機能しますか？"],
    "ko": ["한국의 인구는 왜 감소하고 있습니까?"],
    "zh": ["中国人口为什么下降？", "人工智能对就业有什么影响"],
    "ar": ["ما هي أسباب التضخم في مصر؟"],
    "he": ["מהן הסיבות לאינפלציה בישראל?"],
    "el": ["Ποιες είναι οι αιτίες του πληθωρισμού;"],
    "hi": ["भारत में महंगाई के कारण क्या हैं?"],
    "th": ["สาเหตุของเงินเฟ้อในประเทศไทยคืออะไร"],
    "en": [
        "What are the causes of inflation in Argentina?",
        "How does intermittent fasting affect insulin resistance in adults?",
        "Who directed La vita è bella and when was it released?",
    ],
}

# English, or in no language: foreign names, titles and terms are all that could mislead.
NOT_FOREIGN = [
    "Who directed the film La vie est un long fleuve tranquille?",
    "Describe the plot of La Casa de Papel",
    "Describe La Casa de Papel",
    "What does 魍魎 mean?",
    "Define 魍魎罔两",
    "Translate Война и мир",
    "What is the meaning of Что делать as a title?",
    "Compare Banco de la República Argentina, Banco do Brasil, Banque de France",
    "Rio de la Plata water quality",
    "Los Angeles Lakers versus San Antonio Spurs",
    "Das Boot box office",
    "Explain Sein und Zeit by Martin Heidegger",
    "Was ist Aufklärung by Kant: main argument?",
    "In what year did Je ne regrette rien come out?",
    "pour over coffee methods versus hat and war comment sections",
    "Ludwig Mies van der Rohe and the Bauhaus",
    "Explain que será será",
    "GDP per capita Chile 2023",
    "Is MIT or Caltech more selective?",
    "Who said \"l'état, c'est moi\" and is it what he said?",
]
UNSURE = ["", " ", "?!", "2024", "Zanzibar", "de la", "Wie?", "Tokyo 東京", "Привет", "Какво е изкуствен интелект?"]


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in TOLD.items() for text in texts])
def test_a_question_tells_its_language(code: str, text: str) -> None:
    assert detect_language(text) == code


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_may_be_characters_of_their_own(form: Literal["NFC", "NFD"]) -> None:
    assert detect_language(normalize(form, "¿Cómo funciona la fotosíntesis?")) == "es"


@pytest.mark.parametrize("text", NOT_FOREIGN)
def test_names_and_titles_do_not_make_an_english_question_foreign(text: str) -> None:
    assert detect_language(text) in ("en", None)


@pytest.mark.parametrize("text", UNSURE)
def test_what_is_short_or_unknown_is_in_no_language(text: str) -> None:
    assert detect_language(text) is None


def test_no_english_question_is_taken_for_another_language(eval_data: Path) -> None:
    path = eval_data / "hotpotqa" / "questions.json"
    if not path.is_file():
        pytest.skip("no questions at hotpotqa/questions.json")
    questions = [entry["question"] for entry in json.loads(path.read_text("utf-8"))]
    assert {
        question: detect_language(question) for question in questions if detect_language(question) not in ("en", None)
    } == {}
    assert sum(detect_language(question) == "en" for question in questions) > 0.9 * len(questions)


@given(st.text(max_size=200))
def test_any_text_can_be_asked_about(text: str) -> None:
    assert detect_language(text) in {*TOLD, None}
