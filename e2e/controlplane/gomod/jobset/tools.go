//go:build tools

// Package tools pins the JobSet controller, which runs JobSets on the clusters of the end-to-end tests.
package tools

import _ "sigs.k8s.io/jobset"
