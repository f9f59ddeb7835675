defmodule Reef.Application do
  use Application

  @impl true
  def start(_type, _args) do
    children = [
      {Phoenix.PubSub, name: Reef.PubSub, adapter: Atoll.PubSub, tracked: ["room:"]},
      # Phoenix's own adapter, to compare with.
      Supervisor.child_spec({Phoenix.PubSub, name: Reef.Plain}, id: Reef.Plain)
    ]

    Supervisor.start_link(children, strategy: :one_for_one, name: Reef.Supervisor)
  end
end
