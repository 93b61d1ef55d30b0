# A room as a resource of Terraform, or OpenTofu, by any provider that speaks REST; here Mastercard's.
terraform {
  required_providers {
    restapi = {
      source  = "Mastercard/restapi"
      version = "~> 3.0"
    }
  }
}

variable "admin" {
  description = "The operators' port of any node"
  default     = "http://127.0.0.1:9090"
}

variable "token" {
  description = "security.admin_token, or a token of security.tokens that may operate"
  sensitive   = true
}

provider "restapi" {
  uri                  = var.admin
  bearer_token         = var.token
  headers              = { "Content-Type" = "application/json" }
  id_attribute         = "name"
  create_method        = "PUT" # a room is made where it will be
  write_returns_object = true
  test_path            = "/v1/cluster"
}

resource "restapi_object" "shop" {
  path        = "/v1/rooms"
  create_path = "/v1/rooms/{id}"

  # Keys that are not here have their defaults, and what is only read is nobody's change.
  ignore_server_additions = true

  # As in a configuration file, written as the API writes it.
  data = jsonencode({
    name                 = "shop"
    routes               = [{ host = "shop.example.com", path = "/" }]
    origin               = "http://127.0.0.1:9000"
    total_active_users   = 200
    new_users_per_minute = 60
    session_duration     = "5m"
  })
}
