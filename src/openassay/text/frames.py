"""The sentences of our own that stand in an answer, in the language of its question where that is known here."""

from openassay.text.other_languages import find_other_language

# By language: English is the key. German does without nouns, whose capitals make them look like names nobody verified.
# What is in braces is filled in afterwards and stays as it is.
_FRAMES: dict[str, dict[str, str]] = {
    "Answer": {"de": "Antwort", "fr": "Réponse", "es": "Respuesta", "zh": "回答"},
    "This is based on limited information.": {
        "de": "Dazu war nur wenig zu finden.",
        "fr": "Cette réponse repose sur peu d’informations.",
        "es": "Esta respuesta se basa en poca información.",
        "zh": "以下回答所依据的资料有限。",
    },
    "Here is what was found.": {
        "de": "Folgendes wurde gefunden.",
        "fr": "Voici ce qui a été trouvé.",
        "es": "Esto es lo que se ha encontrado.",
        "zh": "以下是查到的内容。",
    },
    "No answer found": {
        "de": "Keine Antwort gefunden",
        "fr": "Aucune réponse trouvée",
        "es": "No se ha encontrado respuesta",
        "zh": "未找到答案",
    },
    "Sorry, no source had an answer to “{question}”.": {
        "de": "Leider wurde nichts gefunden, was „{question}“ beantwortet.",
        "fr": "Désolé, aucune source ne répond à la question « {question} ».",
        "es": "Lo sentimos, ninguna fuente responde a la pregunta «{question}».",
        "zh": "抱歉，没有资料能回答“{question}”。",
    },
    "You could check the spelling, name the subject in full, or add documents that cover it.": {
        "de": "Vielleicht hilft es, anders oder ausführlicher zu fragen oder mehr hinzuzufügen.",
        "fr": "Vous pouvez vérifier l’orthographe, nommer le sujet en entier ou ajouter des documents qui en traitent.",
        "es": "Puede revisar la ortografía, escribir el nombre completo del tema o añadir documentos que lo traten.",
        "zh": "您可以检查用字、写出完整的名称，或添加与此相关的文档。",
    },
    "Found but not verified": {
        "de": "Gefunden, aber nicht bestätigt",
        "fr": "Trouvé, mais non vérifié",
        "es": "Encontrado, pero sin verificar",
        "zh": "已查到但未能核实",
    },
    "These sources were found and read: {listed}.": {
        "de": "Gefunden und gelesen wurden: {listed}.",
        "fr": "Ces sources ont été trouvées et lues : {listed}.",
        "es": "Se han encontrado y leído estas fuentes: {listed}.",
        "zh": "已查到并阅读以下资料：{listed}。",
    },
    "Nothing in them could be verified as an answer; what they are is listed with the sources.": {
        "de": "Nichts darin ließ sich bestätigen; was es ist, steht weiter unten.",
        "fr": "Rien n’a pu y être vérifié comme réponse ; elles sont décrites dans la liste des sources.",
        "es": "Nada en ellas ha podido verificarse como respuesta; se describen en la lista de fuentes.",
        "zh": "其中没有可以核实为答案的内容；资料详情见来源列表。",
    },
    "No statement here is confirmed by a second independent source.": {
        "de": "Nichts davon wird anderswo unabhängig bestätigt.",
        "fr": "Aucune de ces affirmations n’est confirmée par une seconde source indépendante.",
        "es": "Ninguna de estas afirmaciones está confirmada por una segunda fuente independiente.",
        "zh": "以上内容均没有第二个独立来源证实。",
    },
    "Statements marked {mark} rest on two or more independent sources.": {
        "de": "Was mit {mark} gekennzeichnet ist, wird anderswo unabhängig bestätigt.",
        "fr": "Les affirmations marquées {mark} reposent sur au moins deux sources indépendantes.",
        "es": "Las afirmaciones marcadas con {mark} se apoyan en dos o más fuentes independientes.",
        "zh": "标有 {mark} 的内容有两个或更多独立来源。",
    },
    "What could not be found": {
        "de": "Was nicht gefunden wurde",
        "fr": "Ce qui n’a pas été trouvé",
        "es": "Lo que no se ha encontrado",
        "zh": "未能查到的内容",
    },
    "No source read in this run answered: “{question}”": {
        "de": "Nicht beantwortet wurde: „{question}“",
        "fr": "Aucune des sources lues ne répond à : « {question} »",
        "es": "Ninguna de las fuentes leídas responde a: «{question}»",
        "zh": "所读资料均未回答：“{question}”",
    },
    "No source read in this run had a statement for: “{question}”": {
        "de": "Nichts gefunden wurde zu: „{question}“",
        "fr": "Aucune des sources lues ne dit rien sur : « {question} »",
        "es": "Ninguna de las fuentes leídas dice nada sobre: «{question}»",
        "zh": "所读资料均未谈及：“{question}”",
    },
    "Summary": {"de": "Zusammenfassung", "fr": "Résumé", "es": "Resumen", "zh": "摘要"},
    "Abstract": {"de": "Zusammenfassung", "fr": "Résumé", "es": "Resumen", "zh": "摘要"},
    "Conclusion": {"de": "Fazit", "fr": "Conclusion", "es": "Conclusión", "zh": "结论"},
}


def frame(text: str, question: str) -> str:
    """A sentence in the language of a question, or as it is."""
    return _FRAMES.get(text, {}).get(find_other_language(question) or "", text)
