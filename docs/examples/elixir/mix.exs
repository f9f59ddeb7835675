defmodule Reef.MixProject do
  use Mix.Project

  def project do
    [app: :reef, version: "0.1.0", elixir: "~> 1.14", deps: deps()]
  end

  def application do
    [extra_applications: [:logger], mod: {Reef.Application, []}]
  end

  defp deps do
    [{:atoll, path: "vendor/atoll", manager: :rebar3}]
  end
end
