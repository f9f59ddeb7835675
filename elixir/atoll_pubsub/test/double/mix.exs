# SPDX-License-Identifier: Apache-2.0
defmodule Phoenix.PubSub.MixProject do
  use Mix.Project

  def project, do: [app: :phoenix_pubsub, version: "2.1.0", elixir: "~> 1.14"]

  def application, do: [extra_applications: [:logger], mod: {Phoenix.PubSub.Application, []}]
end
