import KeepsakeReplication
import KeepsakeSync

extension GameDataError {
  /// Runs `body` and translates the errors of lower layers into errors of the public API.
  static func translating<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch {
      throw translated(error)
    }
  }

  /// Translates errors of replication and sync into those that a game sees; returns others unchanged.
  static func translated(_ error: any Error) -> any Error {
    switch error {
    case let error as WalletError:
      switch error {
      case .insufficientRights(_, let spendable, let total):
        return GameDataError(.insufficient(spendable: spendable, total: total, held: []), error.description)
      case .overflow, .tooMany: return GameDataError(.tooLarge, error.description)
      case .idReused(let id): return GameDataError(.idReused(id), error.description)
      case .serverAuthoritative(let currency):
        return GameDataError(.notAllowed(Currency(currency)), error.description)
      case .invalidAmount, .invalidText: return GameDataError(.misuse, error.description)
      }
    case let error as CellError:
      if case .resetBeforeCatchUp = error { return GameDataError(.notCaughtUp, error.description) }
      if case .laterRule = error { return GameDataError(.tooNew, error.description) }
      return GameDataError(.misuse, error.description)
    case let error as CommitError:
      // History may have pruned the version between reading it and committing its contents.
      if case .missingContent = error { return GameDataError(.missing, error.description) }
      if case .tooManyPlayers = error { return GameDataError(.tooLarge, error.description) }
      if case .tooMuch = error { return GameDataError(.tooLarge, error.description) }
      return GameDataError(.misuse, error.description)
    case let error as AccountError:
      switch error.code {
      case .codeUnknown, .identityUnknown, .tooManyGuesses, .retired, .unauthorized:
        return GameDataError(.refused, error.message)
      case .notEntitled: return GameDataError(.notEntitled, error.message)
      case .readOnly: return GameDataError(.readOnly, error.message)
      case .identityTaken: return GameDataError(.identityTaken, error.message)
      case .failed(let failure): return GameDataError(failure)
      }
    case let error as SyncError:
      switch error {
      case .notRunning: return GameDataError.notConnected
      case .otherContainer, .refused: return GameDataError(.refused, error.description)
      case .transport(let failure): return GameDataError(failure)
      case .gone(let slot): return GameDataError(.missing, "\"\(SlotKey(text: slot).name)\": \(error.description)")
      case .store(let cause): return translated(cause)
      }
    case let failure as TransportFailure: return GameDataError(failure)
    default: return error
    }
  }

  static var closed: GameDataError {
    GameDataError(.closed, "the game's data is closed: open it again with GameData.open")
  }

  static var notConnected: GameDataError {
    GameDataError(.notConnected, "no cloud is connected: call `connect` first")
  }

  private init(_ failure: TransportFailure) {
    switch failure.kind {
    case .unreachable, .interrupted, .server: self.init(.unreachable, failure.message)
    case .notEntitled: self.init(.notEntitled, failure.message)
    case .unauthorized, .rejected: self.init(.refused, failure.message)
    }
  }
}
