"""The countries and territories of ISO 3166-1, by region and continent of the UN (M 49).

A region is what M 49 calls an intermediate region where it has one (Western Africa, Caribbean)
and else a sub-region (Western Europe). M 49 leaves out Taiwan, which is in Eastern Asia here,
and gives Antarctica no region: it is a continent of its own.

Names are those in everyday use where ISO turns them around (South Korea for "Korea, Republic
of"); ISO's are understood.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Literal, TypeAlias

from incrowd.codes.hierarchy import ROOT, Hierarchy, from_rows
from incrowd.codes.values import canonical
from incrowd.spec.likeness import distinct, nearly_all

Codes: TypeAlias = Literal["alpha-2", "alpha-3", "names"]

_REGIONS = {
    "Africa": {
        "Eastern Africa": """
            BI BDI Burundi; DJ DJI Djibouti; ER ERI Eritrea; ET ETH Ethiopia; KE KEN Kenya;
            IO IOT British Indian Ocean Territory; KM COM Comoros; MG MDG Madagascar;
            MU MUS Mauritius; MW MWI Malawi; MZ MOZ Mozambique; RE REU Réunion; RW RWA Rwanda;
            SC SYC Seychelles; SO SOM Somalia; SS SSD South Sudan; TZ TZA Tanzania; UG UGA Uganda;
            TF ATF French Southern Territories; YT MYT Mayotte; ZM ZMB Zambia; ZW ZWE Zimbabwe""",
        "Middle Africa": """
            AO AGO Angola; CD COD Democratic Republic of the Congo; CF CAF Central African Republic;
            CG COG Congo; CM CMR Cameroon; GA GAB Gabon; GQ GNQ Equatorial Guinea;
            ST STP São Tomé and Príncipe; TD TCD Chad""",
        "Northern Africa": """
            DZ DZA Algeria; EG EGY Egypt; EH ESH Western Sahara; LY LBY Libya; MA MAR Morocco;
            SD SDN Sudan; TN TUN Tunisia""",
        "Southern Africa": """
            BW BWA Botswana; LS LSO Lesotho; NA NAM Namibia; SZ SWZ Eswatini;
            ZA ZAF South Africa""",
        "Western Africa": """
            BF BFA Burkina Faso; BJ BEN Benin; CI CIV Côte d'Ivoire; CV CPV Cabo Verde;
            GH GHA Ghana; GM GMB Gambia; GN GIN Guinea; GW GNB Guinea-Bissau; LR LBR Liberia;
            ML MLI Mali; MR MRT Mauritania; NE NER Niger; NG NGA Nigeria; SH SHN Saint Helena;
            SL SLE Sierra Leone; SN SEN Senegal; TG TGO Togo""",
    },
    "Americas": {
        "Caribbean": """
            AG ATG Antigua and Barbuda; AI AIA Anguilla; AW ABW Aruba; BB BRB Barbados;
            BL BLM Saint Barthélemy; BQ BES Caribbean Netherlands; BS BHS Bahamas; CU CUB Cuba;
            CW CUW Curaçao; DM DMA Dominica; DO DOM Dominican Republic; GD GRD Grenada;
            GP GLP Guadeloupe; HT HTI Haiti; JM JAM Jamaica; KN KNA Saint Kitts and Nevis;
            KY CYM Cayman Islands; LC LCA Saint Lucia; MF MAF Saint Martin; MQ MTQ Martinique;
            MS MSR Montserrat; PR PRI Puerto Rico; SX SXM Sint Maarten;
            TC TCA Turks and Caicos Islands; TT TTO Trinidad and Tobago;
            VC VCT Saint Vincent and the Grenadines; VG VGB British Virgin Islands;
            VI VIR U.S. Virgin Islands""",
        "Central America": """
            BZ BLZ Belize; CR CRI Costa Rica; GT GTM Guatemala; HN HND Honduras; MX MEX Mexico;
            NI NIC Nicaragua; PA PAN Panama; SV SLV El Salvador""",
        "Northern America": """
            BM BMU Bermuda; CA CAN Canada; GL GRL Greenland; PM SPM Saint Pierre and Miquelon;
            US USA United States""",
        "South America": """
            AR ARG Argentina; BO BOL Bolivia; BR BRA Brazil; BV BVT Bouvet Island; CL CHL Chile;
            CO COL Colombia; EC ECU Ecuador; FK FLK Falkland Islands; GF GUF French Guiana;
            GS SGS South Georgia and the South Sandwich Islands; GY GUY Guyana; PE PER Peru;
            PY PRY Paraguay; SR SUR Suriname; UY URY Uruguay; VE VEN Venezuela""",
    },
    "Antarctica": {"Antarctica": "AQ ATA Antarctica"},
    "Asia": {
        "Central Asia": """
            KG KGZ Kyrgyzstan; KZ KAZ Kazakhstan; TJ TJK Tajikistan; TM TKM Turkmenistan;
            UZ UZB Uzbekistan""",
        "Eastern Asia": """
            CN CHN China; HK HKG Hong Kong; JP JPN Japan; KP PRK North Korea; KR KOR South Korea;
            MN MNG Mongolia; MO MAC Macao; TW TWN Taiwan""",
        "South-eastern Asia": """
            BN BRN Brunei; ID IDN Indonesia; KH KHM Cambodia; LA LAO Laos; MM MMR Myanmar;
            MY MYS Malaysia; PH PHL Philippines; SG SGP Singapore; TH THA Thailand;
            TL TLS Timor-Leste; VN VNM Vietnam""",
        "Southern Asia": """
            AF AFG Afghanistan; BD BGD Bangladesh; BT BTN Bhutan; IN IND India; IR IRN Iran;
            LK LKA Sri Lanka; MV MDV Maldives; NP NPL Nepal; PK PAK Pakistan""",
        "Western Asia": """
            AE ARE United Arab Emirates; AM ARM Armenia; AZ AZE Azerbaijan; BH BHR Bahrain;
            CY CYP Cyprus; GE GEO Georgia; IL ISR Israel; IQ IRQ Iraq; JO JOR Jordan;
            KW KWT Kuwait; LB LBN Lebanon; OM OMN Oman; PS PSE Palestine; QA QAT Qatar;
            SA SAU Saudi Arabia; SY SYR Syria; TR TUR Türkiye; YE YEM Yemen""",
    },
    "Europe": {
        "Eastern Europe": """
            BG BGR Bulgaria; BY BLR Belarus; CZ CZE Czechia; HU HUN Hungary; MD MDA Moldova;
            PL POL Poland; RO ROU Romania; RU RUS Russia; SK SVK Slovakia; UA UKR Ukraine""",
        "Northern Europe": """
            AX ALA Åland Islands; DK DNK Denmark; EE EST Estonia; FI FIN Finland;
            FO FRO Faroe Islands; GB GBR United Kingdom; GG GGY Guernsey; IE IRL Ireland;
            IM IMN Isle of Man; IS ISL Iceland; JE JEY Jersey; LT LTU Lithuania; LV LVA Latvia;
            NO NOR Norway; SE SWE Sweden; SJ SJM Svalbard and Jan Mayen""",
        "Southern Europe": """
            AD AND Andorra; AL ALB Albania; BA BIH Bosnia and Herzegovina; ES ESP Spain;
            GI GIB Gibraltar; GR GRC Greece; HR HRV Croatia; IT ITA Italy; ME MNE Montenegro;
            MK MKD North Macedonia; MT MLT Malta; PT PRT Portugal; RS SRB Serbia; SI SVN Slovenia;
            SM SMR San Marino; VA VAT Holy See""",
        "Western Europe": """
            AT AUT Austria; BE BEL Belgium; CH CHE Switzerland; DE DEU Germany; FR FRA France;
            LI LIE Liechtenstein; LU LUX Luxembourg; MC MCO Monaco; NL NLD Netherlands""",
    },
    "Oceania": {
        "Australia and New Zealand": """
            AU AUS Australia; CC CCK Cocos (Keeling) Islands; CX CXR Christmas Island;
            HM HMD Heard Island and McDonald Islands; NF NFK Norfolk Island; NZ NZL New Zealand""",
        "Melanesia": """
            FJ FJI Fiji; NC NCL New Caledonia; PG PNG Papua New Guinea; SB SLB Solomon Islands;
            VU VUT Vanuatu""",
        "Micronesia": """
            FM FSM Federated States of Micronesia; GU GUM Guam; KI KIR Kiribati; NR NRU Nauru;
            MH MHL Marshall Islands; MP MNP Northern Mariana Islands; PW PLW Palau;
            UM UMI United States Minor Outlying Islands""",
        "Polynesia": """
            AS ASM American Samoa; CK COK Cook Islands; NU NIU Niue; PF PYF French Polynesia;
            PN PCN Pitcairn; TK TKL Tokelau; TO TON Tonga; TV TUV Tuvalu; WF WLF Wallis and Futuna;
            WS WSM Samoa""",
    },
}
# Other names; the order of their words, accents and small words do not matter.
_ALSO = """
    AE UAE, Emirates; AX Aland; BA Bosnia, Bosnia-Hercegovina; BL Saint Barts, Saint Barths; BN
    Brunei Darussalam; BO Plurinational State of Bolivia; BQ Bonaire, Bonaire Sint Eustatius and
    Saba, Bonaire Saint Eustatius and Saba; BS The Bahamas; BY Byelorussia, Belorussia; CC Cocos
    Islands, Keeling Islands; CD DRC, DR Congo, Congo-Kinshasa, Democratic Congo, Zaire; CG
    Congo-Brazzaville, Republic of the Congo; CH Swiss Confederation; CI Ivory Coast; CN
    People's Republic of China, Mainland China, PRC; CV Cape Verde; CZ Czech Republic; DE
    Federal Republic of Germany; EG Arab Republic of Egypt; FK Falkland Islands Malvinas,
    Falklands, Malvinas; FM Micronesia; FO Faeroe Islands, Faroes; GB Great Britain,
    Britain, United Kingdom of Great Britain and Northern Ireland, England, Scotland, Wales,
    Northern Ireland; GR Hellas, Hellenic Republic; HK Hong Kong SAR, Hong Kong China, Hong
    Kong SAR China; HM Heard and McDonald Islands; IE Republic of Ireland, Eire; IR Islamic
    Republic of Iran, Persia; KG Kyrgyz Republic; KN Saint Kitts; KP Democratic People's
    Republic of Korea, DPRK; KR Republic of Korea, Korea; LA Lao People's Democratic Republic,
    Lao PDR, Lao; LY Libyan Arab Jamahiriya; MD Republic of Moldova; MF Saint Martin French
    part; MK Macedonia, FYROM, Republic of North Macedonia, Former Yugoslav Republic of
    Macedonia; MM Burma; MO Macau, Macao SAR, Macao SAR China; NL Holland, The Netherlands; PN
    Pitcairn Islands; PS State of Palestine, Palestinian Territory, Occupied Palestinian
    Territory, Palestinian Territories, West Bank and Gaza; RE La Réunion; RU Russian
    Federation; SH Saint Helena Ascension and Tristan da Cunha; SJ Svalbard, Svalbard and Jan
    Mayen Islands; SK Slovak Republic; SV Salvador; SX Sint Maarten Dutch part; SY Syrian Arab
    Republic; SZ Swaziland; TL East Timor; TR Turkey; TW Taiwan Province of China, Chinese
    Taipei, Republic of China; TZ United Republic of Tanzania; US United States of America, US
    of A; VA Vatican, Vatican City, Holy See Vatican City State, Vatican City State; VC Saint
    Vincent; VE Bolivarian Republic of Venezuela; VG Virgin Islands UK; VI Virgin Islands of the
    United States, USVI; VN Viet Nam; WF Wallis and Futuna Islands; WS Western Samoa; YE
    Republic of Yemen"""
# Codes that are not ISO's and yet in wide use: of the United Kingdom, and of Greece in the EU.
_RESERVED = {"UK": "GB", "EL": "GR"}
# Postal codes of states of the US that are codes of countries, too.
_STATES = "AL AR AZ CA CO DE GA ID IL IN KY LA MA MD ME MN MO MS MT NC NE PA SC SD TN VA"
_SILENT = re.compile(r"[.'`\u2018\u2019]")  # U.S., d'Ivoire
_SMALL = {"the", "of", "and"}
_SHORT = {
    "st": "saint", "is": "islands", "rep": "republic", "dem": "democratic", "fed": "federated",
    "sts": "states",
}  # fmt: skip
_FORMAL = re.compile(r"\b(?:republic|kingdom)\b ?")  # Republic of Poland


@cache
def _countries() -> dict[str, tuple[str, str, str, str, str]]:
    """Code of two letters, of three, name, region and continent, by the first."""
    found = {}
    for continent, regions in _REGIONS.items():
        for region, listed in regions.items():
            for country in listed.split(";"):
                two, three, name = country.split(maxsplit=2)
                found[two] = (two, three, " ".join(name.split()), region, continent)
    return dict(sorted(found.items()))


@cache
def _by_code() -> dict[str, str]:
    """The code of two letters by every code."""
    both = {code: row[0] for row in _countries().values() for code in row[:2]}
    return {**both, **_RESERVED}


@cache
def _by_name() -> dict[str, str]:
    """The code of two letters by the words of every name."""
    found = {_words(row[2]): row[0] for row in _countries().values()}
    for country in _ALSO.split(";"):
        two, names = country.split(maxsplit=1)
        found.update({_words(name): two for name in names.split(",")})
    return found


def _words(name: str) -> str:
    """What is left of a name without accents, punctuation, small words and the order of words."""
    plain = "".join(x for x in unicodedata.normalize("NFKD", name) if not unicodedata.combining(x))
    words = re.findall(r"\w+", _SILENT.sub("", plain).casefold().replace("_", " "))
    return " ".join(sorted(_SHORT.get(word, word) for word in words if word not in _SMALL))


def find(text: str) -> str | None:
    """The code of two letters of a country, by any of its codes and names; None if there is none.

    >>> [find(x) for x in ("us", "U.S.A.", "United-States", "Korea, Rep. of", "cote d’ivoire")]
    ['US', 'US', 'US', 'KR', 'CI']
    """
    code = _by_code().get(_SILENT.sub("", text.strip()).upper())
    words, names = _words(text), _by_name()
    return code or names.get(words) or names.get(_FORMAL.sub("", words).rstrip())


def hierarchy(codes: Codes, *, other: str | None = None) -> Hierarchy:
    """Countries by region and continent, in the order of their codes."""
    shown = {"alpha-2": 0, "alpha-3": 1, "names": 2}[codes]
    values = {two: row[shown] for two, row in _countries().items()}
    rows = [(values[two], *row[3:], ROOT) for two, row in _countries().items()]

    def locate(value: object) -> str | None:
        text = canonical(value)
        found = find(text) if text is not None else None
        return text if found is None else values[found]

    return replace(from_rows(rows, other=other), locate=locate)


def looks_like(texts: Iterable[str]) -> Codes | None:
    """What a column of these texts would show of countries, if nearly all of them are some.

    Names may have codes among them (UK, USA). Codes that are all of states of the US as well
    are not taken for countries.
    """
    met = distinct(texts)
    if nearly_all(met, partial(_is_code, length=2)):
        return None if {text.upper() for text in met} <= set(_STATES.split()) else "alpha-2"
    if nearly_all(met, partial(_is_code, length=3)):
        return "alpha-3"
    longer = sum(len(text) > 3 for text in met)
    return "names" if 2 * longer > len(met) and nearly_all(met, find) else None


def _is_code(text: str, *, length: int) -> bool:
    return len(text) == length and text.upper() in _by_code()
