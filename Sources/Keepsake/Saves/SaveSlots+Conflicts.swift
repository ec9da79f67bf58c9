import KeepsakeReplication
import KeepsakeStore

/// Conflicts that a game shows to its player.
extension SaveSlots {
  /// Returns the conflicting saves of a slot.
  ///
  /// ```swift
  /// if let conflict = try game.saves.conflict(.main) {
  ///   for side in conflict.sides { show(side.version.savedAt, side.version.metadata.title, side.value) }
  /// }
  /// ```
  ///
  /// Works with every policy: a game can show what a merge or a choice was made from.
  ///
  /// - Parameters:
  ///   - slot: The slot to look at.
  ///   - context: As for `load`.
  /// - Returns: The conflict; nil if there is none.
  /// - Throws: The decoding error if none of the saves can be read: a save of this slot is then kept beside them, and
  ///   the conflict can be resolved with that. `StoreError` if the store can't be read; `GameDataError` with `misuse`
  ///   for an invalid name.
  public func conflict<Value>(_ slot: Slot<Value>, context: Any? = nil) throws -> Conflict<Value>? {
    try Self.check(slot.name)
    let reading = try read(slot)
    guard reading.sides.count > 1 else { return nil }
    let resolver = resolver(slot, reading, context)
    let decoded = try resolver.decoded()
    return Conflict(
      sides: decoded.readable.map { Conflict.Side(version: $0.side.summary, value: $0.value) },
      unreadable: decoded.unreadable.map { Conflict.UnreadableSide(version: $0.side.summary, error: $0.error) },
      ancestor: resolver.ancestor(), heads: resolver.parents(without: decoded.unreadable.map(\.side)), slot: slot)
  }

  /// Resolves a conflict by saving a value: one of the sides, or what the game made of them.
  ///
  /// ```swift
  /// let side = conflict.sides[choice]
  /// try game.saves.resolve(conflict, with: side.value, side.version.metadata)
  /// world = side.value
  /// ```
  ///
  /// Replaces every side that `conflict` returned. A version that has arrived since then is kept beside the new one. So
  /// is each of `Conflict.unreadable`, and the slot stays in conflict, unless `replacingUnreadable` is true. What is
  /// replaced stays in the history.
  ///
  /// - Parameters:
  ///   - conflict: What `conflict(_:context:)` returned.
  ///   - value: The value to save.
  ///   - metadata: What lists show for this version.
  ///   - replacingUnreadable: Whether to replace the saves that this program can't read, too, such as those of another
  ///     type under the slot's name. Another program, perhaps a newer one, may be able to read them.
  /// - Returns: A handle that reports when the version is durable.
  /// - Throws: As `capture`.
  @discardableResult
  public func resolve<Value>(
    _ conflict: Conflict<Value>, with value: Value, _ metadata: SaveMetadata = SaveMetadata(),
    replacingUnreadable: Bool = false
  ) throws -> Pending<Version> {
    let bytes = try conflict.slot.coding.encode(
      value, writer: core.slotParents.writer(in: conflict.slot.name, of: core.store.writer))
    let unreadable = conflict.unreadable.map(\.version.id)
    // Also replaces what the game saved while the player was choosing, because it came from one of the sides.
    return Pending(
      try commit(
        core.commits.draft(
          .bytes(bytes), to: conflict.slot.name, metadata,
          additionalParents: conflict.heads + (replacingUnreadable ? unreadable : []),
          keeping: replacingUnreadable ? [] : unreadable)))
  }

  /// Resolves a conflict by saving a value, and waits until it is durable.
  ///
  /// ```swift
  /// let side = conflict.sides[choice]
  /// try await game.saves.resolve(conflict, with: side.value, side.version.metadata)
  /// ```
  ///
  /// - Parameters:
  ///   - conflict: What `conflict(_:context:)` returned.
  ///   - value: The value to save.
  ///   - metadata: What lists show for this version.
  ///   - replacingUnreadable: Whether to replace the saves that this program can't read, too.
  /// - Returns: The new version.
  /// - Throws: As `capture`, and `StoreError` if the disk can't be written.
  @discardableResult
  public nonisolated(nonsending) func resolve<Value>(
    _ conflict: Conflict<Value>, with value: Value, _ metadata: SaveMetadata = SaveMetadata(),
    replacingUnreadable: Bool = false
  ) async throws -> Version {
    let pending: Pending<Version> = try resolve(
      conflict, with: value, metadata, replacingUnreadable: replacingUnreadable)
    return try await pending.value
  }

  /// Returns what makes one value of the saves that were read.
  func resolver<Value>(
    _ slot: Slot<Value>, _ reading: SlotReading, _ context: Any?
  ) -> ConflictResolver<Value> {
    ConflictResolver(slot: slot, reading: reading, context: context) { [core] version, error in
      core.events.report(
        Incident(
          kind: .unreadable, slot: slot.name, version: version,
          message:
            """
            an earlier version of the slot "\(slot.name)" can't be decoded, so a conflict is merged without it: \
            \(error)
            """,
          date: core.now))
    }
  }
}
