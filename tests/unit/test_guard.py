"""Which addresses may be fetched."""

import ipaddress
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.errors import AddressPolicyError, ConfigurationError
from openassay.fetch.guard import AddressGuard, is_public

guard = AddressGuard()

PRIVATE = [
    "0.0.0.1", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.0.23",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "168.63.129.16", "100.100.100.200",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "64:ff9b:1::808:808", "100::1", "2001::1", "2001:0:a00:1::", "2001:2::1",
    "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254",
    "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2a00:1450:4001::5efe:10.0.0.1",
    "2a00:1450:4001::200:5efe:127.0.0.1", "2606:4700::1111%1", "1::1", "8000::1",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.215.14", "100.63.255.255", "100.128.0.0", "126.0.0.1",
    "128.0.0.1", "168.63.129.15", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "198.17.255.255",
    "198.20.0.0", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2400:cb00::1",
    "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2a00:1450:4001::5efe:8.8.8.8", "3ffe::1",
]  # fmt: skip


@pytest.mark.requirement("W-08")
@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses(address: str) -> None:
    assert not guard.can_connect(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert guard.can_connect(ip_address(address))


@given(st.ip_addresses(v=4))
def test_what_is_public_is_so_by_the_standard_library_too(address: IPv4Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_reserved


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_of_ipv6_only_global_unicast_is_public(address: IPv6Address) -> None:
    if is_public(address) and not (address.ipv4_mapped or address in ipaddress.ip_network("64:ff9b::/96")):
        assert address in ipaddress.ip_network("2000::/3")
        assert address.sixtofour is None
        assert address.teredo is None


inside = st.sampled_from([address for address in PRIVATE if "." in address and ":" not in address]).map(IPv4Address)


@given(inside, st.integers(0, 2**64 - 1))
def test_a_private_address_in_an_ipv6_one_is_private(hidden: IPv4Address, prefix: int) -> None:
    number = int(hidden)
    global_prefix = (0b001 << 125) | (prefix >> 3 << 64)
    forms = [
        number,  # ::127.0.0.1
        0xFFFF << 32 | number,
        0x64_FF9B << 96 | number,
        0x64_FF9B_0001 << 80 | number,
        0x2002 << 112 | number << 80,
        0x2001_0000 << 96 | (number ^ 0xFFFF_FFFF),
        global_prefix | 0x5EFE << 32 | number,
        global_prefix | 0x0200_5EFE << 32 | number,
    ]
    assert [form for form in map(IPv6Address, forms) if is_public(form)] == []


def _spellings(address: IPv4Address) -> list[str]:
    a, b, c, d = address.packed
    number = int(address)
    plain = [
        str(number),
        hex(number),
        f"0{number:o}",
        f"{a}.{b}.{c}.{d}",
        f"{a}.{b}.{c << 8 | d}",
        f"{a}.{number & 0xFFFFFF}",
    ]
    plain += [f"{a:#x}.{b:#x}.{c:#x}.{d:#x}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a:#x}.{b}.0{c:o}.{d:#X}"]
    wide = str(address).translate({ord(str(digit)): chr(0xFF10 + digit) for digit in range(10)})
    return [
        *plain,
        wide,
        wide.replace(".", "。"),
        str(address).replace(".", "%2e"),
        f"{address}.",
        f"[::ffff:{address}]",
    ]


@pytest.mark.requirement("W-08")
@given(inside, st.sampled_from(["http", "https"]))
def test_no_spelling_of_a_private_address_passes(address: IPv4Address, scheme: str) -> None:
    for spelling in _spellings(address):
        with pytest.raises(AddressPolicyError):
            guard.check(f"{scheme}://{spelling}/")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.org/", "is not an http or https address"),
        ("file:///etc/passwd", "is not an http or https address"),
        ("javascript:alert(1)", "is not an http or https address"),
        ("data:text/html,hello", "is not an http or https address"),
        ("//example.org/", "is not an address"),
        ("example.org", "is not an address"),
        ("", "is not an address"),
        ("http://", "is not an address"),
        ("http://exa mple.org/", "is not an address"),
        ("http://example.org:99999/", "is not an address"),
        ("http://foo.0x4/", "is not an address"),
        ("http://user@example.org/", "carries a user name or password"),
        ("http://user:secret@example.org/", "carries a user name or password"),
        ("http:\\\\user:secret@example.org/", "carries a user name or password"),
        ("ftp://user:secret@example.org/", "is not an http or https address"),
        ("http://user:secret@exa mple.org/", "is not an address"),
        ("http://example.org:25/", "leads to port 25, which is not for the web"),
        ("https://example.org:6667/", "leads to port 6667, which is not for the web"),
        ("http://example.org:0/", "leads to port 0, which is not for the web"),
        ("http://localhost/", "leads to a private address"),
        ("http://LOCALHOST./", "leads to a private address"),
        ("http://a.localhost/", "leads to a private address"),
        ("http://printer.local/", "leads to a private address"),
        ("http://metadata.google.internal/", "leads to a private address"),
        ("http://router.home.arpa/", "leads to a private address"),
        ("http://intranet/", "leads to a private address"),
        ("http://xn--mgba3a4f16a/", "leads to a private address"),
        ("http://a..b.org/", "has no valid host name"),
        ("http://example.org../", "has no valid host name"),
        (f"http://{'a' * 64}.org/", "has no valid host name"),
        (f"http://{'a.' * 130}org/", "has no valid host name"),
        (f"http://example.org/{'a' * 2_000}", "is longer than 2,000 characters"),
        (f"http://example.org/{'ä' * 500}", "is longer than 2,000 characters"),
    ],
)
def test_refused_addresses_say_why(url: str, reason: str) -> None:
    with pytest.raises(AddressPolicyError) as caught:
        guard.check(url)
    assert caught.value.message == reason
    assert caught.value.help
    assert "secret" not in f"{caught.value.message} {caught.value.context}"


def test_an_address_in_its_parts() -> None:
    found = guard.check(" HTTPS://Bücher.Example.ORG.:8443/a b?q=1&r#frag ")
    assert found.host == "xn--bcher-kva.example.org"
    assert (found.scheme, found.port, found.target) == ("https", 8443, "/a%20b?q=1&r")
    assert found.origin == "https://xn--bcher-kva.example.org:8443"
    assert "#" not in found.url
    assert guard.check("http://[2606:4700:4700::1111]/").origin == "http://[2606:4700:4700::1111]"
    assert guard.check("?b", "https://example.org/a").url == "https://example.org/a?b"


def test_networks_that_a_person_allows() -> None:
    here = AddressGuard(["127.0.0.1/32", "10.1.0.0/16", "fd12::/16"])
    assert here.check("http://127.0.0.1:8080/").ip == IPv4Address("127.0.0.1")
    assert here.check("http://[::ffff:10.1.2.3]/").ip is not None
    assert here.check("http://wiki/").is_private_name
    assert here.check_ips(here.check("http://wiki/"), ["10.1.0.5", "fd12::5"]) == [
        IPv4Address("10.1.0.5"),
        IPv6Address("fd12::5"),
    ]
    for url in ("http://127.0.0.2/", "http://10.2.0.1/", "http://169.254.169.254/", "http://[fd13::1]/"):
        with pytest.raises(AddressPolicyError):
            here.check(url)


def test_a_name_from_inside_must_lead_inside() -> None:
    here = AddressGuard(["10.1.0.0/16"])
    for answers in (["8.8.8.8"], ["10.1.0.5", "8.8.8.8"], ["10.2.0.5"], ["10.1.0.5", "no address"]):
        with pytest.raises(AddressPolicyError):
            here.check_ips(here.check("http://wiki/"), answers)


def test_one_private_answer_spoils_a_name() -> None:
    address = guard.check("http://example.org/")
    assert guard.check_ips(address, ["8.8.8.8", "8.8.8.8"]) == [IPv4Address("8.8.8.8")]
    for answers in (["8.8.8.8", "127.0.0.1"], ["fe80::1%eth0"], ["2606:4700::1", "::1"], ["8.8.8.8", "what"]):
        with pytest.raises(AddressPolicyError, match="private address"):
            guard.check_ips(address, answers)


@pytest.mark.parametrize("host", ["a/b", "a@b", "a?b", "a#b", "a b", "", "a\\b", "127.1", "localhost", "fe80::1%eth0"])
def test_a_host_for_a_proxy_is_judged_alike(host: str) -> None:
    with pytest.raises(AddressPolicyError):
        guard.check_host(host, 443)


def test_a_port_for_a_proxy_is_judged_alike() -> None:
    assert guard.check_host("example.org", 443).port == 443
    assert guard.check_host("2606:4700:4700::1111", 80).ip == IPv6Address("2606:4700:4700::1111")
    for port in (-1, 0, 25, 65_536):
        with pytest.raises(AddressPolicyError):
            guard.check_host("example.org", port)


@pytest.mark.parametrize("network", ["10.1.0.0/8", "localhost", "", "300.0.0.0/8"])
def test_a_network_that_is_none(network: str) -> None:
    with pytest.raises(ConfigurationError, match="allow_addresses"):
        AddressGuard([network])


@given(st.text(max_size=100))
def test_any_text_is_an_address_or_is_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://example.org/{text}"):
        try:
            found = guard.check(url)
        except AddressPolicyError:
            continue
        assert found.url.startswith(("http://", "https://"))
        assert found.ip is None or is_public(found.ip)
