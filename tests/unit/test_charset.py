"""Characters of pages whose server, header and bytes do not always agree."""

import pytest

from openassay.fetch.decoders import decode_page

CYRILLIC = "Портовая служба измерила прилив высотой четырнадцать с половиной метров, и никто этого не объяснил. " * 4
JAPANESE = "気象庁は十日、今年の夏の平均気温が統計を取り始めてから最も高くなったと発表した。" * 8
CHINESE = "国家统计局周四公布的数据显示，今年第三季度国内生产总值同比增长百分之四点九，高于市场预期。" * 8
FRENCH = "Le marégraphe a relevé une marée de quatorze mètres à l’été, que personne n’a su expliquer. " * 4


@pytest.mark.parametrize(
    ("text", "encoding", "header", "meta"),
    [
        (FRENCH, "utf-8", "utf-8", ""),
        (FRENCH, "utf-8", "iso-8859-1", ""),  # a server's default, which is wrong
        (FRENCH, "utf-8", "", ""),
        (FRENCH, "cp1252", "iso-8859-1", ""),
        (FRENCH, "cp1252", "", "latin1"),
        (FRENCH, "cp1252", "", ""),
        (CYRILLIC, "windows-1251", "windows-1251", ""),
        (CYRILLIC, "windows-1251", "", "windows-1251"),
        (CYRILLIC, "koi8-r", "koi8-r", ""),
        (JAPANESE, "shift_jis", "", "Shift_JIS"),
        (JAPANESE, "shift_jis", "x-sjis", ""),
        (JAPANESE, "iso2022_jp", "iso-2022-jp", ""),
        (CHINESE, "gb18030", "gb2312", ""),
        (CHINESE, "gb18030", "", "gbk"),
        (CHINESE, "utf-16", "", ""),
        (CHINESE, "utf-16-le", "utf-16le", ""),
    ],
)
def test_charsets(text: str, encoding: str, header: str, meta: str) -> None:
    tag = f'<meta charset="{meta}">' if meta else ""
    assert text in decode_page(f"<html><head>{tag}</head><body><p>{text}</p>".encode(encoding), header)


@pytest.mark.parametrize("name", ["", "no-such-charset", "hex", "zip", "idna", "\x00", "unicode_escape"])
def test_a_charset_that_is_none_is_no_harm(name: str) -> None:
    assert decode_page("caf\u00e9".encode(), name) == "caf\u00e9"
