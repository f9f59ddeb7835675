# SPDX-License-Identifier: Apache-2.0
defmodule Atoll.PubSub.Follows do
  @moduledoc """
  Who on this node follows what, as pure data: which slots the node has to claim, and which of them all members know.

  A slot is *known* from when all members have acknowledged a claim with it until a claim without it is made. So a
  follower of a known slot need not wait. `widen/1` and `narrow/1` give the slots of the next claim: the first has all
  that are known or followed, and takes nothing away; the second only what is both known and followed.
  """

  alias Atoll.PubSub.Claims

  defstruct topics: %{}, slots: %{}, known: MapSet.new()

  @type t :: %__MODULE__{
          # The topics that each process follows.
          topics: %{pid => MapSet.t(binary)},
          # How many of these fall into each slot.
          slots: %{Claims.slot() => pos_integer},
          known: MapSet.t(Claims.slot())
        }

  @doc "A process follows a topic, once however often it says so. Is its slot known?"
  @spec follow(t, pid, binary) :: {boolean, t}
  def follow(follows, pid, topic) do
    slot = Claims.slot(topic)
    topics = Map.get(follows.topics, pid, MapSet.new())

    follows =
      if MapSet.member?(topics, topic) do
        follows
      else
        %{
          follows
          | topics: Map.put(follows.topics, pid, MapSet.put(topics, topic)),
            slots: Map.update(follows.slots, slot, 1, &(&1 + 1))
        }
      end

    {MapSet.member?(follows.known, slot), follows}
  end

  @doc "It follows it no more."
  @spec unfollow(t, pid, binary) :: t
  def unfollow(follows, pid, topic) do
    topics = Map.get(follows.topics, pid, MapSet.new())

    if MapSet.member?(topics, topic) do
      rest = MapSet.delete(topics, topic)

      %{
        follows
        | topics: put_or_drop(follows.topics, pid, rest),
          slots: one_less(follows.slots, Claims.slot(topic))
      }
    else
      follows
    end
  end

  @doc "A process has ended."
  @spec gone(t, pid) :: t
  def gone(follows, pid) do
    Enum.reduce(Map.get(follows.topics, pid, []), follows, fn topic, acc -> unfollow(acc, pid, topic) end)
  end

  @doc "Whether a process follows anything."
  @spec follows?(t, pid) :: boolean
  def follows?(follows, pid), do: is_map_key(follows.topics, pid)

  @doc "The slots to be claimed so that all that is followed becomes known."
  @spec widen(t) :: MapSet.t(Claims.slot())
  def widen(follows), do: MapSet.union(follows.known, followed(follows))

  @doc "All members have acknowledged a claim of these slots, the last that was made."
  @spec known(t, MapSet.t(Claims.slot())) :: t
  def known(follows, slots), do: %{follows | known: slots}

  @doc "What is known and followed by nobody is known no more: the slots to be claimed then, where that takes any away."
  @spec narrow(t) :: {:same | MapSet.t(Claims.slot()), t}
  def narrow(follows) do
    slots = MapSet.intersection(follows.known, followed(follows))

    if MapSet.size(slots) == MapSet.size(follows.known),
      do: {:same, follows},
      else: {slots, %{follows | known: slots}}
  end

  defp put_or_drop(topics, pid, rest) do
    if MapSet.size(rest) == 0, do: Map.delete(topics, pid), else: %{topics | pid => rest}
  end

  defp followed(follows), do: MapSet.new(Map.keys(follows.slots))

  defp one_less(slots, slot) do
    case slots do
      %{^slot => 1} -> Map.delete(slots, slot)
      %{^slot => n} -> %{slots | slot => n - 1}
    end
  end
end
