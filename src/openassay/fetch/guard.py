"""Which addresses may be fetched: those of the public web, and private networks that a person has allowed.

A name is checked by its form here, and by every address it resolves to when the client connects. Addresses are read
as browsers read them: 0x7f.1, 2130706433 and ⓛocalhost are what the URL parser makes of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from openassay.errors import AddressPolicyError, ConfigurationError
from openassay.text import urls

IP = IPv4Address | IPv6Address
MAX_URL_LENGTH = 2_000

# https://fetch.spec.whatwg.org/#port-blocking
_BAD_PORTS = frozenset(
    int(port)
    for port in """0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115
    117 119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989
    990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
    """.split()
)

# Names that mean something inside a network only.
_PRIVATE_NAME = re.compile(r"(?:.*\.)?(?:localhost|local|localdomain|internal|intranet|lan|home|corp|home\.arpa)|[^.]*")

# The special-purpose registries of IANA, and what clouds have put on public addresses.
_REFUSED_4 = tuple(
    IPv4Network(network)
    for network in """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
    192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    168.63.129.16/32
    """.split()
)
_GLOBAL_6 = IPv6Network("2000::/3")
_REFUSED_6 = tuple(  # within it; 2001::/23 holds Teredo, 2002::/16 is 6to4: tunnels to any IPv4 address
    IPv6Network(network) for network in "2001::/23 2001:db8::/32 2002::/16 3fff::/20".split()
)
_USUAL_PORTS = {"http": 80, "https": 443}
_USERINFO = re.compile(r"[/\\]{2}[^/\\?#]*@")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")  # how a network without IPv4 reaches the public IPv4 web
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


@dataclass(frozen=True, slots=True)
class FetchAddress:
    """A checked address. `host` has no brackets and no trailing dot; `ip` is set where the host is one.

    A private name belongs to a private network, and must resolve into one that is allowed."""

    url: str  # as the parser writes it, without its fragment
    scheme: str
    host: str
    port: int
    target: str  # path and query
    ip: IP | None = None
    is_private_name: bool = False

    @property
    def netloc(self) -> str:
        """The host as the Host header names it, with its port unless that is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _USUAL_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"


class AddressGuard:
    """Refuses addresses outside the public web. `networks` are private ones that a person allows, as 10.1.0.0/16."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        for text in networks:
            try:
                self._networks.append(ip_network(text))
            except ValueError as error:
                raise ConfigurationError(
                    f"harvest.allow_addresses: {text!r} is not a network",
                    help="Write a network as 10.1.0.0/16, or a single address as 127.0.0.1/32.",
                ) from error

    def check(self, url: str, base: str | None = None) -> FetchAddress:
        """Return the address in this text, relative to `base`; raises AddressPolicyError with the reason."""
        if len(url) > MAX_URL_LENGTH:
            raise _policy_error(f"is longer than {MAX_URL_LENGTH:,} characters", url)
        parsed = urls.parse_url(url, base)
        if parsed is None:
            raise _policy_error("is not an address", url)
        if len(parsed.href) > MAX_URL_LENGTH:
            raise _policy_error(f"is longer than {MAX_URL_LENGTH:,} characters", url)
        if not parsed.is_web:
            raise _policy_error("is not an http or https address", url)
        if parsed.userinfo:
            raise _policy_error("carries a user name or password", url)
        port = _USUAL_PORTS[parsed.scheme] if parsed.port is None else parsed.port
        if port in _BAD_PORTS:
            raise _policy_error(f"leads to port {port}, which is not for the web", str(port))
        address = FetchAddress(
            url=parsed.href.partition("#")[0],
            scheme=parsed.scheme,
            host=parsed.host.strip("[]").removesuffix("."),
            port=port,
            target=f"{parsed.path or '/'}?{parsed.query}" if parsed.query else parsed.path or "/",
        )
        ip = _parse_ip(address.host)
        if ip is not None:
            if not self.can_connect(ip):
                raise _policy_error("leads to a private address", address.url)
            return replace(address, ip=ip)
        if len(address.host) > 253 or not all(0 < len(label) <= 63 for label in address.host.split(".")):
            raise _policy_error("has no valid host name", address.url)
        if not _PRIVATE_NAME.fullmatch(address.host):
            return address
        if not self._networks:
            raise _policy_error("leads to a private address", address.url)
        return replace(address, is_private_name=True)

    def check_host(self, host: str, port: int) -> FetchAddress:
        """Check a host and a port, as a proxy is asked for them."""
        name = f"[{host}]" if ":" in host and not host.startswith("[") else host
        if not 0 < port < 65_536 or re.search(r"[/\\?#@\s]", name):
            raise _policy_error("is not a host and port", host)
        return self.check(f"{'https' if port == 443 else 'http'}://{name}:{port}/")

    def check_ips(self, address: FetchAddress, answers: Iterable[str]) -> list[IP]:
        """Check what a name resolves to: all of it must be allowed, or none of it is used."""
        ips = [_parse_ip(answer) for answer in answers]
        is_allowed = self.is_in_networks if address.is_private_name else self.can_connect
        if not all(ip is not None and is_allowed(ip) for ip in ips):
            raise _policy_error("leads to a private address", address.url)
        return [ip for ip in dict.fromkeys(ips) if ip is not None]

    def can_connect(self, ip: IP) -> bool:
        return self.is_in_networks(ip) or is_public(ip)

    def is_in_networks(self, ip: IP) -> bool:
        """Tell whether a person has allowed it in the settings."""
        plain = _unmap(ip)
        return not _has_scope(ip) and any(plain in network for network in self._networks)


def is_public(ip: IP) -> bool:
    """Tell whether this is the address of one machine on the public internet."""
    if _has_scope(ip):
        return False
    plain = _unmap(ip)
    if isinstance(plain, IPv4Address):
        return not any(plain in network for network in _REFUSED_4)
    if plain in _NAT64:
        return is_public(_last_32_bits(plain))
    if plain not in _GLOBAL_6 or any(plain in network for network in _REFUSED_6):
        return False
    tunnelled = (int(plain) >> 32) & 0xFFFF_FFFF in _ISATAP
    return not tunnelled or is_public(_last_32_bits(plain))


def _unmap(ip: IP) -> IP:
    return _last_32_bits(ip) if isinstance(ip, IPv6Address) and ip in _MAPPED else ip


def _last_32_bits(ip: IPv6Address) -> IPv4Address:
    return IPv4Address(int(ip) & 0xFFFF_FFFF)


def _has_scope(ip: IP) -> bool:
    return isinstance(ip, IPv6Address) and ip.scope_id is not None


def _parse_ip(text: str) -> IP | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _policy_error(reason: str, url: str) -> AddressPolicyError:
    shown = _USERINFO.sub("//", url[:MAX_URL_LENGTH])  # no error repeats a password
    return AddressPolicyError(reason, help="Only pages of the public web are fetched.", url=shown)
