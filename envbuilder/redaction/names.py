"""Which names of variables, options, headers, keys and columns say that their value is a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise


class Strength(IntEnum):
    """How sure a name is, and so which values of it are taken for secrets.

    NONE: no value. WEAK: what looks drawn at random. TOKEN: all but words, numbers and paths.
    PASSWORD: all that is no placeholder.
    """

    NONE = 0
    WEAK = 1
    TOKEN = 2
    PASSWORD = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_PASSWORDS = ("password", "passwd", "passwort", "passphrase", "passcode", "kennwort", "contrase")
_TOKENS = ("token", "secret", "apikey", "accesskey", "secretkey", "privatekey", "authkey")
_TOKEN_WORDS = _words(
    "tokens secrets credential credentials cred creds bearer jwt psk sas dsn webhook"
)
_WEAK_WORDS = _words(
    "auth authorization authentication cookie cookies signature sig session sessionid sessid "
    "phpsessid jsessionid csrf xsrf otp mnemonic hmac pat"
)
# Whose password or key it is. With these, what is called a pass or a key is a secret.
_OWNERS = _words(
    "access account admin administrator api app application artifactory auth aws azure bind "
    "bucket client cloud conda consumer container customer data database db decrypt decryption "
    "deploy deployment django docker email encrypt encryption flask ftp function gateway gcp git "
    "google hmac host http https imap ingest integration jwt keyring keystore ldap legacy licence "
    "license login mail mailer master mongo mysql oauth oracle organization partner pg pgp pop "
    "postgres private priv project proxy pulsar rails rds redis registry require root rsa sa "
    "secret security server service session shared sign signing smtp sql ssh ssl store storage "
    "subscription sudo svn system tls truststore user username vault vpn wandb webhook wifi wlan "
    "write ansible become bmc bot broker chap cluster connection dba default guest idrac ilo "
    "ipmi irods jdbc kafka kerberos krb manager mqtt network nexus node odbc owner portal "
    "rabbitmq radius remote replication samba sasl site slurm slurmdbd sync upload vnc web zabbix"
)
# What is called a key is public, or one of a table.
_NO_KEYS = _words(
    "public pub sort primary foreign partition group dedup cache hash lookup dict map json yaml "
    "hot arrow enter press shortcut channel lock row column index unique composite "
    "config option env rank kvs pmi pmix known hosts fingerprint"
)
# With these as its last word a name is about the secret, and its value is none.
_ABOUT = _words(
    "file files filename path paths dir directory folder location locations url uri endpoint type "
    "types name names len length size count counts num number limit limits expires expired expiry "
    "expiration ttl age policy policies required enabled disabled provider providers helper "
    "stores manager mode method methods version format algorithm algorithms alg index status "
    "prompt plugin plugins module modules backend backends scheme timeout error errors cache ring "
    "space spaces board map stroke word words per tokenizer tokenizers ref refs references manager "
    "agent server servers domain realm env var rotation lifetime days seconds hint bits at on off "
    "lines id ids idx usage budget embedding embeddings logits mask masks class callback "
    "validator field fields label tag tags sock socket so py pyc pl c h cc cpp cu hpp rs go js "
    "log txt md rst toml yaml yml json xml ini conf cfg pem pub crt cert dylib dll sh lua "
    "tcl html css whl gz zip support attribute attributes mechanism mechanisms retries failed "
    "failures failure success attempts info"
)
# Of a language model, a parser or a counter.
_NO_TOKENS = _words(
    "max min num n avg mean total pad bos eos unk sep cls mask special next prev previous new "
    "unexpected invalid syntax end start begin sos stop image text prompt completion input output "
    "generated per first last current word line cpu gpu node batch train val "
    "ignore"
)
# Services whose keys and accounts are told by their name alone.
SERVICES = _words(
    "adafruit adobe airtable algolia alibaba anthropic artifactory asana atlassian azure beamer "
    "bintray bitbucket bittrex cloudant cloudflare clojars codecov cohere coinbase confluence "
    "confluent contentful databricks datadog digitalocean discord doppler droneci dropbox duffel "
    "dynatrace easypost etsy facebook fastly finicity finnhub flickr flutterwave flyio frameio "
    "freemius freshbooks gitlab github gitter gocardless grafana heroku hubspot huggingface "
    "infracost intercom jenkins jfrog jira kraken kucoin launchdarkly linear linkedin lob looker "
    "mailchimp mailgun mapbox mattermost maxmind meraki messagebird netlify newrelic notion "
    "nytimes octopus okta openai openshift paypal perplexity plaid planetscale postman prefect "
    "privateai pulumi pushover rapidapi readme rollbar rubygems scalingo segment sendbird sendgrid "
    "sendinblue sentry settlemint shippo shopify sidekiq slack snyk softlayer sonar sonarqube "
    "sourcegraph square squarespace stripe sumo sumologic telegram telegr travis trello twilio "
    "twitch twitter typeform xray yandex zendesk contribsys dnkey"
)
# Two words, or one of them with another word for the same service.
_SERVICE_PAIRS = frozenset(
    {"new relic", "linked in", "message bird", "private ai", "new york", "hugging face"}
    | {"micro soft", "git hub", "git lab", "fly io", "frame io", "launch darkly", "send grid"}
)

# What any secret name holds, in small letters: where to look for names in a text.
KEYWORDS = (
    *("pass", "kennwort", "contrase", "pwd", "pw", "psw", "token", "secret", "key", "cred", "auth"),
    *("cookie", "sig", "session", "sessid", "bearer", "jwt", "psk", "sas", "dsn", "webhook"),
    *("csrf", "xsrf", "otp", "mnemonic", "hmac"),
)


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """Return how surely a value of this name is a secret."""
    words = [each.lower() for each in _WORDS.findall(name)]
    letters = [each for each in words if not each.isdigit()]
    if letters[-2:] in (["secret", "id"], ["role", "id"]):
        return Strength.TOKEN
    if not letters or letters[-1] in _ABOUT:
        return _of_service(letters)
    if name in ("PWD", "OLDPWD"):
        return Strength.NONE
    if any(_is_password(each) for each in letters) or _is_pass(letters, name):
        return Strength.PASSWORD
    if _is_token(letters) or _is_key(letters):
        return Strength.TOKEN
    if letters[-1] in ("key", "keys") or _WEAK_WORDS & set(letters):
        return Strength.NONE if _NO_KEYS & set(letters) else Strength.WEAK
    return _of_service(letters)


def _of_service(words: list[str]) -> Strength:
    pairs = map(" ".join, pairwise(words))
    named = bool(SERVICES & set(words)) or any(each in _SERVICE_PAIRS for each in pairs)
    return Strength.WEAK if named else Strength.NONE


def _is_password(word: str) -> bool:
    owner = word.removesuffix("pw")
    short = word in ("pwd", "pw", "psw", "mdp", "passe", "authtok") or (
        owner != word and owner in _OWNERS
    )
    return short or any(each in word for each in _PASSWORDS)


def _is_secret_word(word: str) -> bool:
    """Whether a word is one for a token: apitoken, secrete; a tokenizer and a secretary are not."""
    plain = not word.startswith(("tokeni", "secretar"))
    return plain and any(each in word for each in _TOKENS) and not word.endswith("s")


def _is_pass(words: list[str], name: str) -> bool:
    """Whether a pass is one for somebody: a compiler has passes as well."""
    if "pass" in words[1:]:
        return words[words.index("pass", 1) - 1] in _OWNERS or name.isupper()
    owner = words[-1].removesuffix("pass").removesuffix("pwd")
    return owner != words[-1] and (owner in _OWNERS or owner == "key")


def _is_token(words: list[str]) -> bool:
    if _NO_TOKENS & set(words):
        return False
    last = words[-1]
    return any(map(_is_secret_word, words)) or last in _TOKEN_WORDS


def _is_key(words: list[str]) -> bool:
    if _NO_KEYS & set(words):
        return False
    pairs = pairwise(words)
    if any(second in ("key", "keys") and first in _OWNERS for first, second in pairs):
        return True
    last = words[-1]
    return last != "key" and last.endswith("key") and last.removesuffix("key") in _OWNERS


def one_of(words: Iterable[str]) -> str:
    """Return a pattern of some words that is quick where most letters begin none of them."""
    by_letter: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        by_letter.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(
        f"{re.escape(letter)}(?:{'|'.join(ends)})" for letter, ends in by_letter.items()
    )
