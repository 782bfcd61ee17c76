// Package docs is what of this folder the program itself shows: the schemas of
// the target file and of the scenario file, which editors read and "brimline check
// --explain-target" and "brimline load --explain" print, and an example of a
// target file.
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

// ScenarioSchema is the JSON Schema of the scenario file.
//
//go:embed scenario.schema.json
var ScenarioSchema []byte
