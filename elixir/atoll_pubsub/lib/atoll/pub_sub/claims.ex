# SPDX-License-Identifier: Apache-2.0
defmodule Atoll.PubSub.Claims do
  @moduledoc """
  What each node wants to be sent of the tracked topics: state that all members have, by the behaviour
  `:atoll_handler`.

  A topic falls into one of 65,536 slots, by a hash that is the same on every release of OTP. A node claims the slots
  of the topics that are followed there: a map of 8 KB, packed for the way, however many topics there are. So what all
  hold is bounded, and no name of a topic leaves a node before a message does. Two topics in one slot cost messages
  that nobody wanted, and lose none.

  A node's claim is one value, with a stamp that grows; nobody else writes it. The later one wins, so the order in which
  claims come does not matter. The stamp begins with the time, so the clock of a machine must not be set back by more
  than a node is away from the cluster. Claims of nodes that are gone are forgotten (`forget/2`); where somebody brings
  back such a claim, it is forgotten again.

  The table of the claims is read by those who publish, without asking a process.
  """

  @behaviour :atoll_handler

  import Bitwise

  @slots 65_536

  @type slot :: 0..65_535
  @type stamp :: {life :: integer, pos_integer}
  # As it travels: the prefixes that the node tracks, and the packed map of its slots.
  @type claim :: {stamp, tracked :: [binary], packed :: binary}

  ## The handler. The state is the table, with a row {node, stamp, tracked, map} for each node.

  @impl true
  def init(name), do: :ets.new(name, [:named_table, :public, :set, read_concurrency: true])

  @impl true
  def merge(node, {{_, _} = stamp, tracked, packed}, table) do
    with true <- later?(stamp, :ets.lookup(table, node)), {:ok, map} <- unpack(packed) do
      true = :ets.insert(table, {node, stamp, tracked, map, packed})
      {:new, table}
    else
      _ -> {:stale, table}
    end
  end

  def merge(_node, _of_a_later_release, table), do: {:stale, table}

  @impl true
  def digest(table), do: Map.new(:ets.select(table, [{{:"$1", :"$2", :_, :_, :_}, [], [{{:"$1", :"$2"}}]}]))

  @impl true
  def since(digest, table) do
    for {node, stamp, tracked, _, packed} <- :ets.tab2list(table),
        not is_map_key(digest, node) or digest[node] < stamp,
        do: {node, {stamp, tracked, packed}}
  end

  defp later?(_stamp, []), do: true
  defp later?(stamp, [row]), do: stamp > elem(row, 1)

  ## What a node claims

  @doc "The claim of a node that tracks topics with these prefixes, and on which these slots are followed."
  @spec claim(stamp, [binary], [slot]) :: claim
  def claim(stamp, tracked, slots), do: {stamp, tracked, pack(slots)}

  @doc "A stamp later than that of this node's last claim, an earlier life's too, where somebody has told it."
  @spec stamp(table :: atom) :: stamp
  def stamp(table) do
    now = System.system_time(:microsecond)

    case :ets.lookup(table, node()) do
      [{_, {life, n}, _, _, _}] when life >= now -> {life, n + 1}
      _ -> {now, 1}
    end
  end

  @doc "The slot of a topic."
  @spec slot(binary) :: slot
  def slot(topic), do: :erlang.phash2(topic, @slots)

  @doc "Whether a topic begins with one of the prefixes."
  @spec tracked?([binary], binary) :: boolean
  def tracked?(prefixes, topic), do: String.starts_with?(topic, prefixes)

  @doc false
  def pack(slots), do: :zlib.zip(map(Enum.sort(slots), 0, <<>>))

  defp map([slot | slots], at, map), do: map(slots, slot + 1, <<map::bits, 0::size(slot - at), 1::1>>)
  defp map([], at, map), do: <<map::bits, 0::size(@slots - at)>>

  defp unpack(packed) do
    case :zlib.unzip(packed) do
      map when byte_size(map) == div(@slots, 8) -> {:ok, map}
      _ -> :error
    end
  rescue
    ErlangError -> :error
  end

  @doc "Those of the table's nodes, but for this one, that a topic's messages are for."
  @spec wanting(table :: atom, binary) :: [node]
  def wanting(table, topic) do
    slot = slot(topic)

    for {node, _, tracked, map, _} <- :ets.tab2list(table),
        node != node(),
        not tracked?(tracked, topic) or claimed?(map, slot),
        do: node
  end

  defp claimed?(map, slot), do: (:binary.at(map, slot >>> 3) >>> (7 - (slot &&& 7)) &&& 1) == 1

  ## For those who publish

  @doc "Whom a message goes to: all, by the overlay, or these nodes."
  @spec way(Atoll.PubSub.config(), binary) :: :all | [node]
  def way(config, topic) do
    if tracked?(config.tracked, topic) and settled?(config) and not doubt?(config) do
      nodes = wanting(config.claims, topic)
      if length(nodes) > config.few, do: :all, else: nodes
    else
      :all
    end
  rescue
    # The table is being made anew.
    ArgumentError -> :all
  end

  # What somebody was told before it published here, these processes have been sent: it is read before the table is.
  defp settled?(config) do
    read?(config.claims, fn -> is_map(:atoll_handler.status(config.claims)) end) and
      read?(config.follower, fn -> GenServer.call(config.follower, :read) == :ok end)
  catch
    :exit, _ -> false
  end

  defp read?(name, ask) do
    case Process.info(Process.whereis(name), :message_queue_len) do
      {:message_queue_len, 0} -> true
      {:message_queue_len, _} -> ask.()
      nil -> false
    end
  end

  @doc "From now on this node is in doubt, for as long as was configured."
  @spec doubt(Atoll.PubSub.config()) :: :ok
  def doubt(config), do: :atomics.put(config.doubt, 1, now() + config.doubt_ms)

  @doc "Whether this node may lack claims of others."
  @spec doubt?(Atoll.PubSub.config()) :: boolean
  def doubt?(config), do: now() < :atomics.get(config.doubt, 1)

  defp now, do: System.monotonic_time(:millisecond)

  @doc "Takes away what a node has claimed: it is gone."
  @spec forget(table :: atom, node) :: :ok
  def forget(table, node) do
    true = :ets.delete(table, node)
    :ok
  end

  @doc "The nodes with a claim."
  @spec nodes(table :: atom) :: [node]
  def nodes(table), do: :ets.select(table, [{{:"$1", :_, :_, :_, :_}, [], [:"$1"]}])

  @doc "Of how many slots each node claims."
  @spec sizes(Atoll.PubSub.config()) :: %{node => non_neg_integer}
  def sizes(config) do
    for {node, _, _, map, _} <- :ets.tab2list(config.claims), into: %{} do
      {node, for(<<bit::1 <- map>>, reduce: 0, do: (n -> n + bit))}
    end
  end
end
