# Where manifests break the contract with deploy.sh, one sentence a line.
#   awk -v namespace=NAMESPACE -v type=FETCH-TYPE -f contract.awk FACTS      (FACTS as facts.awk writes them)

BEGIN { FS = "\t" }
$1 == "object" {
    object = $3 "/" $4
    if ($2 !~ /^(1-foundation|2-migrate|3-services)$/) print object ": the label feedmill.dev/phase must be 1-foundation, 2-migrate or 3-services"
    if ($5 != "-" && $5 != namespace) print object ": is in the namespace " $5 ", and deploy.env says " namespace
    if ($6 != "-" && $6 != type) print object ": is labelled feedmill.dev/fetch-type=" $6
    if ($7 != "feedmill") print object ": the label app.kubernetes.io/part-of must be feedmill"
    if (seen[object]++) print object ": is there twice"
    if ($6 == type) found = 1
}
$1 == "image" && ($2 !~ /(@sha256:|:[^\/:]+$)/ || $2 ~ /:latest$/) { print "image " $2 ": has no fixed tag" }
END { if (!found) print "no object is labelled feedmill.dev/fetch-type=" type }
