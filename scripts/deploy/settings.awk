# What is wrong with the settings in the manifests, one sentence a line, without their values (they may be secret).
#   awk -f settings.awk docs/reference/configuration.md FACTS      (FACTS as facts.awk writes them)
# The names and the kinds of values come from the table in docs/reference/configuration.md, which the tests hold to the code.

function trimmed(text) { gsub(/^[ `]+|[ `]+$/, "", text); return text }

FNR == NR && /^\| `FEEDMILL_/ { split($0, cell, "|"); standard[trimmed(cell[2])] = trimmed(cell[3]); known++ }
FNR == NR { next }
!known { exit }

$1 == "setting" {
    split($0, fact, "\t")
    name = fact[2]; value = fact[3]; where = fact[4]
    if (!(name in standard)) { print where ": " name " is not a setting (docs/reference/configuration.md lists them)"; next }
    if (value ~ /^[|>]/ || value ~ /\$\(/) next   # text of several lines; put together from other variables
    kind = standard[name]
    if (value == "") { if (kind != "(none)") print where ": " name " is empty" }
    else if (kind ~ /^[0-9]+$/ && value !~ /^[0-9]+$/) print where ": " name " is not a whole number"
    else if (kind ~ /^[0-9]+\.[0-9]+$/ && value !~ /^([0-9]+(\.[0-9]*)?|\.[0-9]+)$/) print where ": " name " is not a number"
    else if (kind ~ /^(True|False)$/ && tolower(value) !~ /^(true|false|1|0|yes|no|on|off)$/) print where ": " name " is neither true nor false"
    else if (kind ~ /^[a-z]+:\/\// && value !~ /^[a-z]+:\/\/[^ ]+$/) print where ": " name " is not a URL"
}
