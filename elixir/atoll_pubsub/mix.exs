# SPDX-License-Identifier: Apache-2.0
defmodule Atoll.PubSub.MixProject do
  use Mix.Project

  def project do
    [
      app: :atoll_pubsub,
      version: "0.1.0",
      elixir: "~> 1.14",
      description: "Phoenix.PubSub over a cluster that is no full mesh",
      deps: [{:atoll, path: "../../apps/atoll", manager: :rebar3}, phoenix_pubsub()]
    ]
  end

  def application do
    [extra_applications: [:logger]]
  end

  # Where there is no Hex, PHOENIX_PUBSUB names a folder with that library.
  defp phoenix_pubsub do
    case System.get_env("PHOENIX_PUBSUB") do
      nil -> {:phoenix_pubsub, "~> 2.0"}
      path -> {:phoenix_pubsub, path: path}
    end
  end
end
