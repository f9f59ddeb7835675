# SPDX-License-Identifier: Apache-2.0
defmodule Atoll.PubSub do
  @moduledoc """
  A `Phoenix.PubSub` adapter for a cluster that is no full mesh.

      children = [
        {Phoenix.PubSub, name: MyApp.PubSub, adapter: Atoll.PubSub}
      ]

  Nothing else of the program changes. The application `atoll` runs on the node, with an overlay: with
  `overlay: :cliques` messages go over the connections that the groups have, and over the nodes that are in
  two groups from one to the next; with `overlay: :hyparview` over a few connections of each node. `pg`, on which
  Phoenix's own adapter stands, knows of connected nodes only.

  ## What carries a message

  `:atoll.broadcast/2` of the overlay: it needs no connection but those that are there, repairs what is lost
  on the way, and delivers once. `direct_broadcast` is a plain message to the node named: where
  there is no connection OTP makes one, or the carrier leads it over other nodes.

  ## Topics that few nodes want

  To send each message to all nodes is a waste where a topic has subscribers on two of forty. Topics that begin
  with one of the prefixes of the option `:tracked` go only to the nodes where somebody follows them, by plain
  messages; where these are more than `:few` they go to all by the overlay as ever.

      {Phoenix.PubSub, name: MyApp.PubSub, adapter: Atoll.PubSub, tracked: ["room:"]}

  `Phoenix.PubSub` tells its adapter nothing of subscriptions, so whoever subscribes to a tracked topic says so
  with `subscribe/3` of this module, or, where Phoenix subscribes itself, with `follow/2` before: in
  a channel in `join/3`, in a LiveView in `mount/3`. **A process that subscribes to a tracked topic and does not
  follow it gets what is published on its own node, and of the rest only what comes by chance.**

  A filter must lose nothing for who has just subscribed. Each node *claims* the topics that are followed on it,
  as slots of a hash (`Atoll.PubSub.Claims`), and it is argued thus:

    1. `follow/2` returns when all members of the cluster that this node knows have the claim: it is broadcast,
       and a broadcast after it is acknowledged by all. One sender's broadcasts come in order. So each of them has
       the claim, or knows that it has missed something.
    2. Before a message is published the process that keeps the claims has read what was there for it to read.
    3. A node that may lack claims is *in doubt*, and sends to all: for `:doubt_ms` after it started, after a member
       came (also after a partition), and after it missed a broadcast. Meanwhile it compares its claims with
       its neighbours' four times or more.
    4. Nobody is waited for where nodes want less: they are sent too much for a while. So is a node whose topics
       share a slot with another topic: one in thirty messages, where two thousand topics are followed on it.
    5. A node says what it tracks, and one that tracks other prefixes, or none, is sent what it does not track: from
       some tenths of a second after its adapter started.

  ## Promised

    * A message that is published on a member reaches each member that the overlay connects with it, at most once. The
      node that publishes is served by Phoenix, as with every adapter.
    * Messages from one node that go to all come in the order in which they were published; those that go to few
      nodes do so between one process and one node.
    * What `broadcast` returns is true: `:ok`, it is sent; `{:error, :overloaded}`, nothing is, this node
      publishes faster than the others can be sure to get it. `:atoll.format_error/1` makes a sentence of it.
    * What waits on a receiving node is bounded by `:queue_max`: what is older is dropped and counted (`status/1`).

  ## Not promised

    * Order between a tracked topic's messages of which one went to all and the next to few nodes. That changes
      when doubt begins or ends, or when more or fewer than `:few` nodes follow it. Topics that are not
      tracked are always in order.
    * A message to a node that is cut off, or that is just joining. After a short cut it comes late; after a
      long one it never comes, as with any adapter. `:atoll.subscribe(:missed)` tells of it.
    * That a tracked message that goes to few nodes survives the end of a connection. It is a plain message.
    * More than some thousand messages a second to all: the options of `broadcast` of `:atoll` say how many.

  ## Options, beside those of Phoenix.PubSub

    * `:tracked` - prefixes of topics, none unless given
    * `:few` - to how many nodes at most a tracked message goes by itself, 8
    * `:doubt_ms` - 15000; what a node may take that joins until it has all claims
    * `:follow_ms` - how long `follow/2` waits for the other members, 10000
    * `:follows_max` - how many callers may wait so at once, 10000
    * `:queue_max` - how many messages may wait for this node to hand them to its subscribers, 10000
  """

  @behaviour Phoenix.PubSub.Adapter

  use Supervisor

  alias Atoll.PubSub.{Claims, Follower, Receiver}

  @defaults [tracked: [], few: 8, doubt_ms: 15_000, follow_ms: 10_000, follows_max: 10_000, queue_max: 10_000]

  # What is counted, by its place.
  @counted [to_all: 1, to_few: 2, sent: 3, refused: 4, received: 5, dropped: 6, unknown: 7]

  @type config :: %{
          pubsub: atom,
          # The topic in the overlay, and the name of the process that receives.
          adapter: atom,
          claims: atom,
          follower: atom,
          tracked: [binary],
          few: non_neg_integer,
          doubt_ms: pos_integer,
          follow_ms: pos_integer,
          follows_max: pos_integer,
          queue_max: pos_integer,
          # Until when this node is in doubt, in milliseconds of the monotonic clock.
          doubt: :atomics.atomics_ref(),
          counters: :counters.counters_ref()
        }

  ## Phoenix.PubSub.Adapter

  @impl Phoenix.PubSub.Adapter
  def node_name(_adapter), do: node()

  @impl Phoenix.PubSub.Adapter
  def broadcast(adapter, topic, message, dispatcher) do
    config = config(adapter)

    case Claims.way(config, topic) do
      :all ->
        case :atoll.broadcast(adapter, {topic, message, dispatcher}) do
          :ok ->
            count(config, :to_all)

          {:error, _} = error ->
            count(config, :refused)
            error
        end

      nodes ->
        for node <- nodes, do: Receiver.tell(config, node, topic, message, dispatcher)
        count(config, :sent, length(nodes))
        count(config, :to_few)
    end
  end

  @impl Phoenix.PubSub.Adapter
  def direct_broadcast(adapter, node, topic, message, dispatcher) do
    Receiver.tell(config(adapter), node, topic, message, dispatcher)
  end

  ## Tracked topics

  @doc """
  The caller follows a topic: what is published on it comes to this node, until the caller ends or unfollows it.

  Of a tracked topic it returns when all members know it, which takes some tenths of a second where it is the first
  of its kind on this node. `{:error, reason}` says that they could not be told in `:follow_ms`; nothing is followed
  then. Of any other topic it is `:ok` at once.
  """
  @spec follow(Phoenix.PubSub.t(), Phoenix.PubSub.topic()) :: :ok | {:error, term}
  def follow(pubsub, topic) when is_atom(pubsub) and is_binary(topic) do
    config = config(pubsub)
    if Claims.tracked?(config.tracked, topic), do: Follower.follow(config, topic), else: :ok
  end

  @doc "The caller follows it no more; the others are told within ten seconds."
  @spec unfollow(Phoenix.PubSub.t(), Phoenix.PubSub.topic()) :: :ok
  def unfollow(pubsub, topic) when is_atom(pubsub) and is_binary(topic) do
    Follower.unfollow(config(pubsub), topic)
  end

  @doc "Follows a topic and subscribes to it, with the options of `Phoenix.PubSub.subscribe/3`."
  @spec subscribe(Phoenix.PubSub.t(), Phoenix.PubSub.topic(), keyword) :: :ok | {:error, term}
  def subscribe(pubsub, topic, options \\ []) do
    with :ok <- follow(pubsub, topic), do: Phoenix.PubSub.subscribe(pubsub, topic, options)
  end

  @doc "The caller is subscribed no more, and follows it no more."
  @spec unsubscribe(Phoenix.PubSub.t(), Phoenix.PubSub.topic()) :: :ok
  def unsubscribe(pubsub, topic) do
    :ok = Phoenix.PubSub.unsubscribe(pubsub, topic)
    unfollow(pubsub, topic)
  end

  @doc """
  For people: messages of this node that went `to_all` and `to_few` nodes (to how many of these: `sent`), those
  `refused` because it publishes too fast; `received` from others, `dropped` because too many waited, `unknown`
  because a later release sent them; whether it is in `doubt`; and of how many slots each node claims, in `claims`.
  """
  @spec status(Phoenix.PubSub.t()) :: map
  def status(pubsub) do
    config = config(pubsub)

    Map.new(@counted, fn {name, place} -> {name, :counters.get(config.counters, place)} end)
    |> Map.merge(%{doubt: Claims.doubt?(config), claims: Claims.sizes(config)})
  end

  @doc false
  def count(config, name, more \\ 1), do: :counters.add(config.counters, @counted[name], more)

  ## The processes

  @doc false
  def start_link(options) do
    with {:ok, config} <- configured(options), :ok <- overlay() do
      Supervisor.start_link(__MODULE__, config)
    else
      {:error, sentence} -> {:error, "Atoll.PubSub: " <> sentence}
    end
  end

  # The follower and the receiver begin anew with the claims; a dispatcher that crashes takes the receiver alone.
  @impl Supervisor
  def init(config) do
    for name <- [config.pubsub, config.adapter], do: :persistent_term.put({__MODULE__, name}, config)
    Claims.doubt(config)

    Supervisor.init(
      [
        :atoll_handler.child_spec({config.claims, Claims, config.claims, %{exchange_ms: 3000, queue_max: 20_000}}),
        {Follower, config},
        {Receiver, config}
      ],
      strategy: :rest_for_one
    )
  end

  defp config(name), do: :persistent_term.get({__MODULE__, name})

  defp overlay do
    case :atoll.status() do
      :not_running -> {:error, "the application atoll does not run on this node"}
      %{overlay: :off} -> {:error, "this node has no overlay; set the option overlay of atoll"}
      %{} -> :ok
    end
  end

  defp configured(options) do
    given = Keyword.merge(@defaults, Keyword.take(options, Keyword.keys(@defaults)))

    case Enum.find(given, fn option -> not valid?(option) end) do
      nil ->
        adapter = Keyword.fetch!(options, :adapter_name)

        {:ok,
         Map.merge(Map.new(given), %{
           pubsub: Keyword.fetch!(options, :name),
           adapter: adapter,
           claims: Module.concat(adapter, "Claims"),
           follower: Module.concat(adapter, "Follower"),
           doubt: :atomics.new(1, []),
           counters: :counters.new(length(@counted), [:write_concurrency])
         })}

      {:tracked, other} ->
        {:error, "the option :tracked is a list of prefixes, none of them empty, not #{inspect(other)}"}

      {key, other} ->
        {:error, "the option #{inspect(key)} is a number above 0, not #{inspect(other)}"}
    end
  end

  defp valid?({:tracked, prefixes}), do: is_list(prefixes) and Enum.all?(prefixes, &(is_binary(&1) and &1 != ""))
  defp valid?({_key, number}), do: is_integer(number) and number > 0
end
