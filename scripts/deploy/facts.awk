# Facts about rendered manifests, one a line, tab-separated, "-" for what is not there:
#   object   PHASE KIND NAME NAMESPACE FETCH-TYPE PART-OF     KIND as kubectl takes it (deployment, scaledobject.v1alpha1.keda.sh)
#   image    IMAGE                                            of any container, or of an operator's resource
#   secret   NAME                                             that a pod or a resource needs
#   catalog  NAME                                             a ClusterImageCatalog that a database takes its image from
#   setting  NAME VALUE WHERE                                 FEEDMILL_… of ConfigMaps and of containers
# Kustomize always writes the same form of YAML (one key a line, two spaces, keys in order), so lines are enough;
# the text inside of a ConfigMap is indented and can't be taken for a key of an object.

function bare(text) {   # a YAML scalar without its quotes
    if (text ~ /^".*"$/ || text ~ /^'.*'$/) return substr(text, 2, length(text) - 2)
    return text
}
function after_colon(line) { sub(/^[^:]*: */, "", line); return bare(line) }
function or_dash(text) { return text == "" ? "-" : text }
function indentation(line) { match(line, /^ */); return RLENGTH }
function keep_secret() {
    if (secret_name != "" && !optional) secrets[++secret_count] = secret_name
    secret_name = ""; optional = 0
}
function end_object(    i, type, group) {
    keep_secret(); in_secret = 0
    if (kind != "") {
        type = tolower(kind)   # Kubernetes' own need no group; others have names that several operators use (cluster)
        if (split(api, group, "/") == 2 && group[1] ~ /\./ && group[1] !~ /\.k8s\.io$/)
            type = type "." group[2] "." group[1]
        print "object", or_dash(label["feedmill.dev/phase"]), type, or_dash(name), or_dash(namespace), \
            or_dash(label["feedmill.dev/fetch-type"]), or_dash(label["app.kubernetes.io/part-of"])
        for (i = 1; i <= image_count; i++) print "image", images[i]
        # These make a secret, or do without for a while.
        if (kind !~ /^(Ingress|Certificate|ExternalSecret|SealedSecret)$/)
            for (i = 1; i <= secret_count; i++) print "secret", secrets[i]
        for (i = 1; i <= setting_count; i++) print "setting", settings[i], kind "/" name
        if (kind == "ConfigMap")
            for (i = 1; i <= datum_count; i++) print "setting", data[i], kind "/" name
    }
    api = kind = name = namespace = section = part = variable = ""
    image_count = secret_count = setting_count = datum_count = 0
    split("", label)
}

BEGIN { OFS = "\t" }
/^---/ { end_object(); next }
/^[A-Za-z]/ {
    keep_secret(); in_secret = 0
    section = $1
    part = ""
    if (section == "apiVersion:") api = after_colon($0)
    if (section == "kind:") kind = after_colon($0)
    next
}
section == "metadata:" {
    if (/^  [A-Za-z]/) part = $1
    if (/^  name: /) name = after_colon($0)
    if (/^  namespace: /) namespace = after_colon($0)
    if (part == "labels:" && /^    [^ ]/) { key = $1; sub(/:$/, "", key); label[key] = after_colon($0) }
    next
}
section == "data:" && /^  FEEDMILL_[A-Z0-9_]*: / {
    key = $1; sub(/:$/, "", key)
    data[++datum_count] = key OFS after_colon($0)
    next
}
section == "spec:" {
    # What refers to a secret ends with the next line that stands no deeper; the items of its own list don't.
    depth = indentation($0)
    if (in_secret && (depth < secret_depth || (depth == secret_depth && $1 != "-"))) { keep_secret(); in_secret = 0 }
    if (/[sS]ecret(s|KeyRef|Ref|TargetRef)?:$/) {
        keep_secret()
        in_secret = 1
        secret_depth = ($1 == "-") ? depth + 2 : depth
    } else if (in_secret && /^ *(- )?(name|secretName): /) {
        keep_secret()
        secret_name = after_colon($0)
    } else if (in_secret && /^ *(- )?optional: true/) optional = 1
    else if (/^ *(- )?secretName: /) secrets[++secret_count] = after_colon($0)

    if (/^ *imageCatalogRef:$/) { catalog_depth = depth; of_cluster = 0 }
    else if (catalog_depth && depth <= catalog_depth) catalog_depth = 0
    else if (catalog_depth && /^ *kind: ClusterImageCatalog$/) of_cluster = 1
    else if (catalog_depth && of_cluster && /^ *name: /) print "catalog", after_colon($0)

    if (/^ *(- )?image(Name)?: /) images[++image_count] = after_colon($0)

    if (variable != "" && /^ *value: /) settings[++setting_count] = variable OFS after_colon($0)
    variable = ""
    if (/^ *- name: FEEDMILL_/) variable = after_colon($0)
}
END { end_object() }
