package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/docs"
	"github.com/invoicespec/brimline/examples"
)

// explainTarget prints every key of a target file.
func explainTarget(w io.Writer) error {
	return explain(w, docs.TargetSchema, "target", docs.TargetExample)
}

// explainScenario prints every key of a scenario file.
func explainScenario(w io.Writer) error {
	return explain(w, docs.ScenarioSchema, "scenario", examples.Load)
}

// explain prints every key of a file, from the same schema that editors read, and
// an example.
func explain(w io.Writer, text []byte, file string, example []byte) error {
	var x explanation
	root, err := x.parse(text)
	if err != nil {
		return err
	}
	x.defs = root.Defs
	fmt.Fprintf(&x.out, "%s\nIn an editor: # yaml-language-server: $schema=docs/%s.schema.json, from this project\n\n", root.Description, file)
	if err := x.inside("", root); err != nil {
		return err
	}
	fmt.Fprintf(&x.out, "An example:\n\n%s", example)
	_, err = w.Write(x.out.Bytes())
	return err
}

// schema is as much of JSON Schema as the files' make use of.
type schema struct {
	Description string                     `json:"description"`
	Buys        string                     `json:"x-buys"` // what of contract.Needs a target offers with it
	Type        valueTypes                 `json:"type"`
	Ref         string                     `json:"$ref"`
	AllOf       []json.RawMessage          `json:"allOf"`
	Properties  json.RawMessage            `json:"properties"`
	Names       struct{ Enum []string }    `json:"propertyNames"`
	Additional  json.RawMessage            `json:"additionalProperties"`
	Items       json.RawMessage            `json:"items"`
	Required    []string                   `json:"required"`
	Enum        []any                      `json:"enum"`
	Pattern     string                     `json:"pattern"`
	Minimum     json.Number                `json:"minimum"`
	Above       json.Number                `json:"exclusiveMinimum"`
	Maximum     json.Number                `json:"maximum"`
	Default     any                        `json:"default"`
	Examples    []json.RawMessage          `json:"examples"`
	Defs        map[string]json.RawMessage `json:"$defs"`
}

// valueTypes are the types that a value may have.
type valueTypes []string

// UnmarshalJSON reads one, or a list.
func (k *valueTypes) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(k))
	}
	var one string
	err := json.Unmarshal(text, &one)
	*k = valueTypes{one}
	return err
}

// String is the types in words.
func (k valueTypes) String() string {
	words := map[string]string{"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list", "object": "mapping"}
	var all []string
	for _, one := range k {
		all = append(all, cmp.Or(words[one], one))
	}
	return strings.Join(all, " or ")
}

type explanation struct {
	defs map[string]json.RawMessage
	out  bytes.Buffer
}

// parse reads a schema and all that it refers to; what it says itself comes
// before what it refers to.
func (x *explanation) parse(raw json.RawMessage) (schema, error) {
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("the schema: %w", err)
	}
	parts := s.AllOf
	if s.Ref != "" {
		parts = append(parts, x.defs[strings.TrimPrefix(s.Ref, "#/$defs/")])
	}
	for _, part := range parts {
		more, err := x.parse(part)
		if err != nil {
			return s, err
		}
		s = s.with(more)
	}
	return s, nil
}

// with is s, and what another says of the same value.
func (s schema) with(more schema) schema {
	s.Type = append(s.Type, more.Type...)
	if s.Description == "" {
		s.Description = more.Description
	}
	if s.Properties == nil {
		s.Properties, s.Required = more.Properties, more.Required
	}
	s.Pattern = cmp.Or(s.Pattern, more.Pattern)
	s.Minimum, s.Above, s.Maximum = cmp.Or(s.Minimum, more.Minimum), cmp.Or(s.Above, more.Above), cmp.Or(s.Maximum, more.Maximum)
	return s
}

// inside explains what a value holds.
func (x *explanation) inside(key string, s schema) error {
	properties, err := members(s.Properties)
	if err != nil {
		return err
	}
	for _, m := range properties {
		path := strings.TrimPrefix(key+"."+m.name, ".")
		if err := x.key(path, m.value, slices.Contains(s.Required, m.name)); err != nil {
			return err
		}
	}
	for place, raw := range map[string]json.RawMessage{"[]": s.Items, ".NAME": s.Additional} {
		if len(raw) == 0 || raw[0] != '{' {
			continue
		}
		one, err := x.parse(raw)
		if err != nil {
			return err
		}
		if slices.Contains(one.Type, "object") {
			if err := x.inside(key+place, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// key explains one key and what is below it.
func (x *explanation) key(path string, raw json.RawMessage, required bool) error {
	s, err := x.parse(raw)
	if err != nil {
		return err
	}
	kind := s.Type.String()
	if required {
		kind += ", required"
	}
	fmt.Fprintf(&x.out, "%s  (%s)\n", path, kind)
	say := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&x.out, "    %s%s\n", label, text)
		}
	}
	say("", s.Description)
	say("accepted: ", s.accepted())
	if s.Default != nil {
		say("default: ", fmt.Sprint(s.Default))
	}
	for _, e := range s.Examples {
		var tidy bytes.Buffer
		if err := json.Compact(&tidy, e); err != nil {
			return err
		}
		say("example: ", tidy.String())
	}
	say("buys: ", s.Buys)
	x.out.WriteString("\n")
	return x.inside(path, s)
}

// words is a pattern that lists words.
var words = regexp.MustCompile(`^\^\(([a-z0-9|-]+)\)\$$`)

// accepted is which values are accepted, as far as the type does not say.
func (s schema) accepted() string {
	switch {
	case len(s.Enum) > 0:
		var all []string
		for _, v := range s.Enum {
			all = append(all, fmt.Sprint(v))
		}
		return strings.Join(all, ", ")
	case len(s.Names.Enum) > 0:
		return "keys " + strings.Join(s.Names.Enum, ", ")
	case s.Minimum != "" && s.Maximum != "":
		return fmt.Sprintf("%s to %s", s.Minimum, s.Maximum)
	case s.Minimum != "":
		return fmt.Sprintf("%s or more", s.Minimum)
	case s.Above != "":
		return fmt.Sprintf("above %s, up to %s", s.Above, s.Maximum)
	case words.MatchString(s.Pattern):
		return strings.ReplaceAll(words.FindStringSubmatch(s.Pattern)[1], "|", ", ")
	case s.Pattern != "":
		return "what matches " + s.Pattern
	}
	return ""
}

type member struct {
	name  string
	value json.RawMessage
}

// members lists the members of an object in their order.
func members(object json.RawMessage) ([]member, error) {
	if object == nil {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var all []member
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: fmt.Sprint(name)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
