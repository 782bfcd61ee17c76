// Package docs is what of this folder the program itself shows: the schema of the
// target file, which editors read and "brimline check --explain-target" prints,
// and an example of one.
package docs

import _ "embed"

// TargetSchema is the JSON Schema of the target file.
//
//go:embed target.schema.json
var TargetSchema []byte

// TargetExample is a target file that makes sense.
//
//go:embed target.example.yaml
var TargetExample []byte
