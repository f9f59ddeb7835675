# SPDX-License-Identifier: Apache-2.0
# What Phoenix.PubSub 2.x is published to do, as far as the tests of an adapter need it, for where there is no Hex:
#
#   - subscriptions are entries of a Registry with duplicate keys, which has the adapter as its metadata; so an
#     adapter hears of none of them
#   - broadcast asks the adapter to tell all other nodes, and dispatches here if it answers :ok; broadcast_from leaves
#     out one process; direct_broadcast asks the adapter to tell one node; local_broadcast dispatches here alone
#   - a dispatcher is a module with dispatch(entries, from, message), where entries are {pid, metadata}
#   - the adapter is a child after the Registry, with the options given and :adapter_name
#   - the default adapter, PG2, has a process on each node in a group of `pg`, and sends to the members that `pg` knows

defmodule Phoenix.PubSub.Application do
  use Application

  def start(_type, _args) do
    pg = %{id: :pg, start: {:pg, :start_link, [Phoenix.PubSub]}}
    Supervisor.start_link([pg], strategy: :one_for_one)
  end
end

defmodule Phoenix.PubSub.Adapter do
  @callback child_spec(keyword) :: Supervisor.child_spec()
  @callback node_name(adapter :: atom) :: atom | binary
  @callback broadcast(adapter :: atom, binary, term, module) :: :ok | {:error, term}
  @callback direct_broadcast(adapter :: atom, atom | binary, binary, term, module) :: :ok | {:error, term}
end

defmodule Phoenix.PubSub do
  @type t :: atom
  @type topic :: binary

  use Supervisor

  def start_link(options) do
    Supervisor.start_link(__MODULE__, options, name: Module.concat(options[:name], "Supervisor"))
  end

  @impl true
  def init(options) do
    adapter = options[:adapter] || Phoenix.PubSub.PG2
    name = Module.concat(options[:name], "Adapter")

    Supervisor.init(
      [
        {Registry, keys: :duplicate, name: options[:name], meta: [pubsub: {adapter, name}]},
        {adapter, Keyword.put(options, :adapter_name, name)}
      ],
      strategy: :rest_for_one
    )
  end

  def subscribe(pubsub, topic, options \\ []) do
    with {:ok, _} <- Registry.register(pubsub, topic, options[:metadata]), do: :ok
  end

  def unsubscribe(pubsub, topic), do: Registry.unregister(pubsub, topic)

  def broadcast(pubsub, topic, message, dispatcher \\ __MODULE__) do
    broadcast_from(pubsub, :none, topic, message, dispatcher)
  end

  def broadcast_from(pubsub, from, topic, message, dispatcher \\ __MODULE__) do
    {adapter, name} = adapter(pubsub)

    with :ok <- adapter.broadcast(name, topic, message, dispatcher),
         do: dispatch(pubsub, from, topic, message, dispatcher)
  end

  def direct_broadcast(node, pubsub, topic, message, dispatcher \\ __MODULE__) do
    {adapter, name} = adapter(pubsub)
    adapter.direct_broadcast(name, node, topic, message, dispatcher)
  end

  def local_broadcast(pubsub, topic, message, dispatcher \\ __MODULE__) do
    dispatch(pubsub, :none, topic, message, dispatcher)
  end

  def node_name(pubsub) do
    {adapter, name} = adapter(pubsub)
    adapter.node_name(name)
  end

  def dispatch(entries, from, message) do
    for {pid, _} <- entries, pid != from, do: send(pid, message)
    :ok
  end

  defp dispatch(pubsub, from, topic, message, dispatcher) do
    Registry.dispatch(pubsub, topic, fn entries -> dispatcher.dispatch(entries, from, message) end)
  end

  defp adapter(pubsub) do
    {:ok, adapter} = Registry.meta(pubsub, :pubsub)
    adapter
  end
end

defmodule Phoenix.PubSub.PG2 do
  @behaviour Phoenix.PubSub.Adapter

  use GenServer

  def start_link(options), do: GenServer.start_link(__MODULE__, options, name: options[:adapter_name])

  @impl Phoenix.PubSub.Adapter
  def node_name(_adapter), do: node()

  @impl Phoenix.PubSub.Adapter
  def broadcast(adapter, topic, message, dispatcher) do
    others = for pid <- :pg.get_members(Phoenix.PubSub, adapter), node(pid) != node(), do: pid
    for pid <- others, do: send(pid, {topic, message, dispatcher})
    :ok
  end

  @impl Phoenix.PubSub.Adapter
  def direct_broadcast(adapter, node, topic, message, dispatcher) do
    send({adapter, node}, {topic, message, dispatcher})
    :ok
  end

  @impl GenServer
  def init(options) do
    :ok = :pg.join(Phoenix.PubSub, options[:adapter_name], self())
    {:ok, options[:name]}
  end

  @impl GenServer
  def handle_info({topic, message, dispatcher}, pubsub) do
    Phoenix.PubSub.local_broadcast(pubsub, topic, message, dispatcher)
    {:noreply, pubsub}
  end
end
