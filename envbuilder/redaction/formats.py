"""What secrets look like by themselves: the beginnings and shapes that their issuers give them.

Each row says which rule of a public collection describes the format; the patterns are our own, and
wider than theirs, because a token that was cut off is a secret too. Rules of gitleaks:
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml, of detect-secrets:
https://github.com/Yelp/detect-secrets/tree/master/detect_secrets/plugins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORD = r"[\w-]"


class Format(NamedTuple):
    """How a secret begins, and how many characters of which kind follow at least.

    ``rule``: the public rule that describes it.
    """

    start: str
    minimum: int
    characters: str
    rule: str


FORMATS = (
    Format("A3-[A-Z0-9]{6}-", 16, "[A-Z0-9-]", "gitleaks 1password-secret-key"),
    Format("ops_eyJ", 16, r"[\w+/=-]", "gitleaks 1password-service-account-token"),
    Format("p8e-", 24, _WORD, "gitleaks adobe-client-secret"),
    Format("(?i:AGE-SECRET-KEY)-1", 16, "[A-Za-z0-9]", "gitleaks age-secret-key"),
    Format("pat[A-Za-z0-9]{14}[.]", 16, "[0-9a-f]", "gitleaks airtable-personnal-access-token"),
    Format("LTAI", 12, "[A-Za-z0-9]", "gitleaks alibaba-access-key-id"),
    Format("AKCp|AKC", 10, "[A-Za-z0-9]", "gitleaks artifactory-api-key"),
    Format("AP[0-9]", 10, "[A-Za-z0-9]", "detect-secrets artifactory"),
    Format("AP[A-F](?=[A-Za-z0-9]{0,30}[0-9])", 10, "[A-Za-z0-9]", "detect-secrets artifactory"),
    Format("cmVmd", 24, "[A-Za-z0-9]", "gitleaks artifactory-reference-token"),
    Format("ATATT3|ATCTT3|ATBB", 20, r"[\w=-]", "gitleaks atlassian-api-token"),
    Format(
        "(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}[.][A-Za-z0-9]{4,6}[.]acc[_-]",
        *(16, r"[\w.+/=-]", "gitleaks authress-service-client-access-key"),
    ),
    Format("(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)", 16, "[A-Z0-9]", "gitleaks aws-access-token"),
    Format("ABSK", 40, "[A-Za-z0-9+/=]", "gitleaks aws-amazon-bedrock-api-key-long-lived"),
    Format("bedrock-api-key-", 16, r"[\w+/=-]", "gitleaks aws-amazon-bedrock-api-key-short-lived"),
    Format(r"[\w~.]{3}[0-9]Q~", 24, r"[\w~.-]", "gitleaks azure-ad-client-secret"),
    Format("b_", 40, r"[\w=-]", "gitleaks beamer-api-token"),
    Format("4b1d", 34, "[A-Za-z0-9]", "gitleaks clickhouse-cloud-api-secret-key"),
    Format("(?i:CLOJARS)_", 30, "[A-Za-z0-9]", "gitleaks clojars-api-token"),
    Format(r"v1[.]0-[0-9a-f]{24}-", 32, "[0-9a-f]", "gitleaks cloudflare-origin-ca-key"),
    Format("dapi", 32, "[0-9a-f]", "gitleaks databricks-api-token"),
    Format("dnkey-", 24, r"[\w=-]", "gitleaks defined-networking-api-token"),
    Format("do[opr]_v1_", 24, "[0-9A-Za-z]", "gitleaks digitalocean-pat"),
    Format(r"[MNO][\w-]{23,27}[.][\w-]{6}[.]", 20, _WORD, "detect-secrets discord"),
    Format(r"dp[.](?:pt|st|sa|ct|scim|audit)[.]", 20, r"[\w.]", "gitleaks doppler-api-token"),
    Format(r"sl[.](?:u[.])?", 60, r"[\w=-]", "gitleaks dropbox-short-lived-api-token"),
    Format("[A-Za-z0-9]{11}A{10}", 30, r"[\w=-]", "gitleaks dropbox-long-lived-api-token"),
    Format("duffel_(?:test|live)_", 20, r"[\w=-]", "gitleaks duffel-api-token"),
    Format(r"dt0[a-z][0-9]{2}[.]", 24, r"[A-Za-z0-9.]", "gitleaks dynatrace-api-token"),
    Format("EZ[AT]K", 40, "[A-Za-z0-9]", "gitleaks easypost-api-token"),
    Format(r"[0-9]{15,16}(?:\||%7C|%)", 24, _WORD, "gitleaks facebook-access-token"),
    Format("EAA[A-Z]", 40, "[A-Za-z0-9]", "gitleaks facebook-page-access-token"),
    Format("FLW(?:SECK|PUBK)(?:_TEST)?-", 12, "[A-Za-z0-9-]", "gitleaks flutterwave-secret-key"),
    Format("fo1_", 30, _WORD, "gitleaks flyio-access-token"),
    Format("fm(?:1[ar]|2)_", 40, r"[\w+/=]", "gitleaks flyio-access-token"),
    Format("fio-u-", 30, r"[\w=-]", "gitleaks frameio-api-token"),
    Format("AIza", 30, _WORD, "gitleaks gcp-api-key"),
    Format(r"ya29[.]", 20, r"[\w.-]", "https://developers.google.com/identity/protocols/oauth2"),
    Format("GOCSPX-", 20, _WORD, "https://developers.google.com/identity/protocols/oauth2"),
    Format("gh[a-z]_", 16, r"\w", "gitleaks github-pat"),
    Format("github_pat_", 16, r"\w", "gitleaks github-fine-grained-pat"),
    Format("gl[a-z]{2,8}-", 16, r"[\w.-]", "gitleaks gitlab-pat"),
    Format("GR1348941", 16, _WORD, "gitleaks gitlab-rrt"),
    Format("(?:live|test)_(?:pub_)?", 30, r"[\w=-]", "gitleaks gocardless-api-token, lob-api-key"),
    Format("gl(?:c|sa)_", 24, r"[\w+/=]", "gitleaks grafana-cloud-api-token"),
    Format(r"[ps]at[.][\w-]{22}[.]", 20, r"[\w.]", "gitleaks harness-api-key"),
    Format("[A-Za-z0-9]{14}[.]atlasv1[.]", 30, r"[\w=-]", "gitleaks hashicorp-tf-api-token"),
    Format(r"hv[bsr][.]", 20, _WORD, "gitleaks vault-service-token"),
    Format(r"[sbr][.](?=[A-Za-z]{0,23}[0-9])", 24, "[A-Za-z0-9]", "gitleaks vault-service-token"),
    Format("HRKU-", 20, _WORD, "gitleaks heroku-api-key-v2"),
    Format("hf_|api_org_", 20, r"\w", "gitleaks huggingface-access-token"),
    Format("ico-", 30, "[A-Za-z0-9]", "gitleaks infracost-api-token"),
    Format("s-s4t2(?:ud|af)-", 30, "[0-9a-f]", "gitleaks intra42-client-secret"),
    Format(r"eyJ[\w-]{8,}[.](?=[\w-])", 8, r"[\w.+/=-]", "gitleaks jwt"),
    Format(r"ey[A-Za-z0-9]{17,}[.]ey", 17, r"[\w.+/\\=-]", "gitleaks jwt"),
    Format("ZXlK", 30, "[A-Za-z0-9+/=]", "gitleaks jwt-base64"),
    Format("eyJrIjoi", 30, "[A-Za-z0-9+/=]", "gitleaks grafana-api-key"),
    Format("LS0tLS1CRUdJTi", 16, "[A-Za-z0-9+/=]", "base64 of -----BEGIN, as in a kubeconfig"),
    Format("lin_(?:api|oauth)_", 20, "[A-Za-z0-9]", "gitleaks linear-api-key"),
    Format("[0-9a-f]{32}-us", 1, "[0-9]", "detect-secrets mailchimp"),
    Format("(?:pub)?key-", 32, "[0-9a-f]", "gitleaks mailgun-private-api-token"),
    Format("[0-9a-z]{32}-[0-9a-z]{8}-", 8, "[0-9a-z]", "gitleaks mailgun-signing-key"),
    Format(r"[ps]k[.](?:eyJ)?", 40, r"[\w.-]", "gitleaks mapbox-api-token"),
    Format(r"[A-Za-z0-9]{6}_[A-Za-z0-9]{20,}_mm", 1, "k", "gitleaks maxmind-license-key"),
    Format("NR(?:JS|II|AK|RA|AA|BR)-", 16, "[A-Za-z0-9-]", "gitleaks new-relic-user-api-key"),
    Format("ntn_|secret_(?=[A-Za-z]{0,30}[0-9])", 24, "[A-Za-z0-9]", "gitleaks notion-api-token"),
    Format("(?i:npm)_", 24, "[A-Za-z0-9]", "gitleaks npm-access-token"),
    Format("oy2[a-z0-9]", 38, "[a-z0-9]", "https://learn.microsoft.com/nuget/nuget-org"),
    Format("API-", 20, "[A-Z0-9]", "gitleaks octopus-deploy-api-key"),
    Format("00(?=[A-Za-z])", 38, r"[\w=-]", "gitleaks okta-access-token"),
    Format("sk-", 20, _WORD, "gitleaks openai-api-key, anthropic-api-key"),
    Format("sha256~", 16, r"[\w@=.+/-]", "gitleaks openshift-user-token"),
    Format("pplx-", 24, "[A-Za-z0-9]", "gitleaks perplexity-api-key"),
    Format("(?:access|public|link)-(?:sandbox|development|production)-", 16, "[0-9a-f-]", "plaid"),
    Format("pscale_(?:tkn|oauth|pw)_", 16, r"[\w=.-]", "gitleaks planetscale-api-token"),
    Format("PMAK-", 24, "[A-Za-z0-9-]", "gitleaks postman-api-token"),
    Format("pn[ua]_", 24, "[A-Za-z0-9]", "gitleaks prefect-api-token"),
    Format("pul-", 32, "[0-9a-f]", "gitleaks pulumi-api-token"),
    Format("pypi-", 16, _WORD, "gitleaks pypi-upload-token"),
    Format("rdme_", 24, "[A-Za-z0-9]", "gitleaks readme-api-token"),
    Format("rubygems_", 24, "[0-9a-f]", "gitleaks rubygems-api-token"),
    Format("tk-us-", 24, _WORD, "gitleaks scalingo-api-token"),
    Format(r"SG[.]", 20, r"[\w=.-]", "gitleaks sendgrid-api-token"),
    Format("xkeysib-|xsmtpsib-", 32, "[A-Za-z0-9-]", "gitleaks sendinblue-api-token"),
    Format("sntry[su]_", 24, r"[\w+/=]", "gitleaks sentry-org-token"),
    Format("sm_[aps]at_", 12, "[A-Za-z0-9]", "gitleaks settlemint-personal-access-token"),
    Format("shippo_(?:live|test)_", 24, "[0-9A-Fa-f]", "gitleaks shippo-api-token"),
    Format("shp[a-z]{2}_", 24, "[0-9A-Fa-f]", "gitleaks shopify-access-token"),
    Format("(?i:xox[a-z])[.-]", 8, r"[\w.-]", "gitleaks slack-bot-token"),
    Format("(?i:xapp|xwfp)-[0-9]-", 8, _WORD, "gitleaks slack-app-token"),
    Format("sq[uap]_", 30, r"[\w=-]", "gitleaks sonar-api-token"),
    Format("sgp_", 30, r"\w", "gitleaks sourcegraph-access-token"),
    Format("EAAA", 20, _WORD, "gitleaks square-access-token"),
    Format("sq0[a-z]{3}-", 16, _WORD, "gitleaks square-access-token"),
    Format("[spr]k_(?:test|live|prod)_", 8, "[A-Za-z0-9]", "gitleaks stripe-access-token"),
    Format("whsec_", 16, r"[\w+/=]", "https://docs.stripe.com/webhooks"),
    Format("sk_(?=[A-Za-z_]{0,28}[0-9])", 20, r"[\w+/=-]", "gitleaks freemius-secret-key"),
    Format("[0-9]{8,10}:A", 30, _WORD, "detect-secrets telegram_token"),
    Format("(?:AC|SK)", 32, "[0-9A-Fa-f]", "gitleaks twilio-api-key"),
    Format("A{22}", 40, "[A-Za-z0-9%]", "gitleaks twitter-bearer-token"),
    Format("tfp_", 24, r"[\w=.-]", "gitleaks typeform-api-token"),
    Format("t1[.]", 40, r"[\w=.-]", "gitleaks yandex-access-token"),
    Format("AQVN", 30, _WORD, "gitleaks yandex-api-key"),
    Format("YC", 38, _WORD, "gitleaks yandex-aws-access-token"),
    Format("wandb_v1_", 24, r"\w", "https://docs.wandb.ai/support/find_wandb_api_key"),
    Format("dckr_[a-z]{3}_", 16, _WORD, "https://docs.docker.com/security/access-tokens"),
    Format("dG9rOg==|tskey-[a-z]+-", 12, r"[\w-]", "https://tailscale.com/kb/1085/auth-keys"),
    Format("(?i:appid)=", 32, "[0-9a-f]", "https://openweathermap.org/appid"),
    # Hashes of passwords.
    Format("[$](?:1|2[abxy]?|5|6|7|y|gy|apr1)[$]", 16, "[A-Za-z0-9./$=,+]", "crypt(5)"),
    Format("[$](?:argon2|scrypt|pbkdf2)[a-z0-9-]*[$]", 16, "[A-Za-z0-9./$=,+]", "crypt(5)"),
)  # fmt: skip

# The rest of a URL is the secret there: what the place begins with, and its pattern.
_HOOKS = {
    "hooks.slack.com/": r"(?:services|workflows|triggers)/",
    "discord.com/api/": r"(?:v[0-9]+/)?webhooks/",
    "discordapp.com/api/": r"(?:v[0-9]+/)?webhooks/",
    ".webhook.office.com/": r"webhookb2/",
    "outlook.office.com/": r"webhook/",
    "outlook.office365.com/": r"webhook/",
    "hooks.zapier.com/": r"hooks/",
    "api.telegram.org/": r"(?:file/)?bot",
    "maker.ifttt.com/": r"trigger/",
    ".logic.azure.com": r"(?::[0-9]+)?/workflows/",
    "chat.googleapis.com/": r"v1/spaces/",
    "api.softlayer.com/": r"(?:soap|xmlrpc|rest)/v[0-9.]+/(?=[a-z0-9]{64})",
    # Of Mattermost, wherever it runs.
    "/hooks/": r"(?=[a-z0-9]{26})",
}
_HOOK_ENDS = {
    place: re.compile(rf"{re.escape(place)}{end}(?P<secret>[^\s\"'<>]+)")
    for place, end in _HOOKS.items()
}

# A run of characters that can hold a token, between spaces, quotes and the parts of a path.
_RUN = re.compile(r"[\w+.~%|$@=:-]{12,}", re.ASCII)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9$])(?:"
    + "|".join(f"(?:{each.start})(?:{each.characters}){{{each.minimum},}}" for each in FORMATS)
    + ")",
    re.ASCII,
)
# What is left of a token of base64 behind a slash.
_MORE = re.compile(r"(?:/[\w+=/-]*)?", re.ASCII)
# As AWS makes its secret keys: 40 characters of base64, which a slash may divide into short parts.
_AWS_SECRET = re.compile(r"(?<![\w+/.-])[A-Za-z0-9+][A-Za-z0-9+/]{39}(?![\w+/.=-])", re.ASCII)
# A part of a run, between what parts words of names, addresses and queries.
_PART = re.compile(r"[A-Za-z0-9+]{20,}={0,2}", re.ASCII)
_PLAIN_WORDS = re.compile(r"[A-Za-z][a-z]{3,}|[A-Z]{5,}")
_DIGEST = re.compile(r"[0-9a-f]+")
# A digest, a name that a compiler made, a hexadecimal number.
_NO_SECRET = re.compile(r"(?i:sha|md)[0-9]{1,3}[:=_-]|_Z|_R[A-Z]|0x|\?\?")


def tokens(text: str) -> Iterator[tuple[int, int]]:
    """Yield where secrets lie in a text that can be told by what they look like."""
    yield from _hooks(text)
    yield from (key.span() for key in _AWS_SECRET.finditer(text) if is_random(key.group()))
    for run in _RUN.finditer(text):
        begin, end = run.span()
        for found in _TOKEN.finditer(text, begin, end):
            if not _DIGEST.fullmatch(found.group()):
                more = _MORE.match(text, end) if found.end() == end else None
                yield found.start(), more.end() if more else found.end()
        if not _NO_SECRET.search(text, max(0, begin - 8), begin + 8):
            parts = _PART.finditer(text, begin, end)
            yield from (part.span() for part in parts if is_random(part.group()))


def _hooks(text: str) -> Iterator[tuple[int, int]]:
    for place, pattern in _HOOK_ENDS.items():
        at = text.find(place)
        while at >= 0:
            found = pattern.match(text, at)
            if found:
                yield found.span("secret")
            at = text.find(place, found.end() if found else at + 1)


def is_random(text: str) -> bool:
    """Whether a word of 20 characters or more is drawn at random from large and small letters.

    Hexadecimal digits count for nothing: digests of files and of commits are no secrets.
    """
    if text in (text.lower(), text.upper()):
        return False
    # A name may have a number.
    digits = sum(map(text.count, "0123456789"))
    return digits > 1 and sum(map(len, _PLAIN_WORDS.findall(text))) * 2 < len(text)
