package admin

import _ "embed"

//go:embed openapi.yaml
var openAPI []byte
