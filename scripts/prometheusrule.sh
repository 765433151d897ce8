#!/usr/bin/env bash
# Print the PrometheusRule that holds the groups of monitoring/installations.yml and alerts.yml. After a change there:
#   scripts/prometheusrule.sh > k8s/components/monitoring/prometheusrule.yaml
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cat <<'HEAD'
# Written by scripts/prometheusrule.sh from monitoring/installations.yml and alerts.yml: change those, not this one.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: feedmill
  labels:
    app.kubernetes.io/part-of: feedmill
spec:
HEAD
sed -n '/^groups:/,$ { s/^./  &/; p }' monitoring/installations.yml
echo
sed -n '/^groups:/,$ { /^groups:/! { s/^./  &/; p } }' monitoring/alerts.yml
